import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { deployment, pod } from "../../../test/builders/pod.ts";
import { requestFor } from "../../../test/builders/request.ts";
import { Draft } from "../decision/draft.ts";
import type { ModuleFinding } from "../decision/finding.ts";
import type { AdmissionRequest } from "../decision/request.ts";
import { CAUSES_LIMIT } from "../decision/status.ts";
import { type Json, stringAt } from "../json.ts";
import type { Evaluation } from "./evaluate-hooks.ts";
import { type AdmissionResponse, responseOf, reviewOf, reviewText } from "./response.ts";

function evaluation(change: Partial<Evaluation> = {}): Evaluation {
  const request = requestFor(pod());
  return {
    request,
    phase: "mutate",
    draft: new Draft(pod()),
    denials: [],
    findings: [],
    commits: [],
    counts: [],
    unknown: [],
    trace: [],
    asked: [],
    patched: new Set(),
    ...change,
  };
}

const denial = (message: string, change: object = {}) => ({
  code: 403,
  reason: "Forbidden",
  message,
  module: "m",
  hook: "h",
  ...change,
});

const violation = (i: number): ModuleFinding => ({
  module: "m",
  rule: "rule",
  outcome: "violated",
  message: `wrong ${i}`,
});

describe("allowed", () => {
  test("without findings", () => {
    expect(reviewOf(responseOf(evaluation()))).toEqual({
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      response: { uid: evaluation().request.uid, allowed: true },
    });
  });

  test("with a patch, warnings and audit annotations", () => {
    const draft = new Draft(pod());
    draft.set(["spec", "nodeSelector", "zöne"], "1", undefined);
    const findings: ModuleFinding[] = [
      { module: "m", rule: "r", outcome: "skipped", message: "w", warn: 1, audit: { key: "k", value: "v" } },
    ];
    const review = reviewOf(responseOf(evaluation({ draft, findings })));
    expect(review).toMatchObject({
      response: { allowed: true, patchType: "JSONPatch", warnings: ["w"], auditAnnotations: { "m.k": "v" } },
    });
    expect(review).not.toHaveProperty("response.status");
    const patch = Buffer.from(stringAt(review, "response", "patch") ?? "", "base64").toString("utf8");
    expect(JSON.parse(patch)).toEqual([{ op: "add", path: "/spec/nodeSelector", value: { zöne: "1" } }]);
  });

  test("nothing is patched when validating, nor without an object", () => {
    const draft = new Draft(pod());
    draft.set(["spec", "x"], 1, undefined);
    expect(responseOf(evaluation({ draft, phase: "validate" })).patch).toEqual([]);
    const request = requestFor(pod(), { object: undefined, operation: "DELETE" });
    expect(responseOf(evaluation({ draft, request })).patch).toEqual([]);
  });
});

describe("denied", () => {
  test("has the code and reason of the first denial, and each message once", () => {
    const denials = [denial("a"), denial("b", { code: 422, reason: "Invalid" }), denial("a")];
    expect(responseOf(evaluation({ denials })).status).toEqual({
      code: 403,
      reason: "Forbidden",
      message: "a\nb",
      details: { name: "web-0", group: "", kind: "pods" },
      causes: [
        { reason: "Forbidden", message: "a" },
        { reason: "Invalid", message: "b" },
        { reason: "Forbidden", message: "a" },
      ],
    });
  });

  test("has no patch, with any edits", () => {
    const draft = new Draft(pod());
    draft.set(["spec", "x"], 1, undefined);
    const answer = responseOf(evaluation({ draft, denials: [denial("a")] }));
    expect(answer.patch).toEqual([]);
    expect(reviewOf(answer)).not.toHaveProperty("response.patch");
  });

  test.each<[number, number]>([
    [0, 403],
    [200, 403],
    [399, 403],
    [400, 400],
    [429, 429],
    [500, 500],
  ])("code %d reaches the client as %d", (code, expected) => {
    expect(responseOf(evaluation({ denials: [denial("a", { code })] })).status?.code).toBe(expected);
  });

  test("retryAfterSeconds may come from a later denial", () => {
    const denials = [denial("a"), denial("b", { code: 429, retryAfterSeconds: 7 })];
    const review = reviewOf(responseOf(evaluation({ denials })));
    expect(review).toHaveProperty("response.status", {
      code: 403,
      reason: "Forbidden",
      message: "a\nb",
      details: {
        name: "web-0",
        group: "",
        kind: "pods",
        causes: [
          { reason: "Forbidden", message: "a" },
          { reason: "Forbidden", message: "b" },
        ],
        retryAfterSeconds: 7,
      },
    });
  });

  test("violations are the causes, with the policy, the field and the code", () => {
    const findings: ModuleFinding[] = [
      {
        module: "m",
        rule: "label",
        outcome: "violated",
        code: "USHER-X01",
        policy: { kind: "Rule", namespace: "shop", name: "p" },
        path: ["spec", "containers", 0, "image"],
        message: "is too old",
      },
      violation(1),
      { ...violation(2), outcome: "would-violate" },
      { ...violation(3), outcome: "failed" },
    ];
    const review = reviewOf(responseOf(evaluation({ findings, denials: [denial("a")] })));
    expect(review).toHaveProperty("response.status.details.causes", [
      { reason: "USHER-X01", message: "Rule/shop/p: is too old", field: "spec.containers[0].image" },
      { reason: "rule", message: "wrong 1" },
    ]);
  });

  test("limits the number of causes", () => {
    expect(CAUSES_LIMIT).toBe(64);
    const found = (count: number) => Array.from({ length: count }, (_, i) => violation(i));
    const causes = (count: number) =>
      responseOf(evaluation({ findings: found(count), denials: [denial("a")] })).status?.causes;
    expect(causes(64)).toHaveLength(64);
    expect(causes(65)).toHaveLength(64);
    expect(causes(65)?.at(-1)?.message).toBe("wrong 63");
  });

  test("if a module denied without a violation, the failure is the cause", () => {
    const failed: ModuleFinding = { ...violation(1), outcome: "failed", code: "USHER-E01" };
    const elsewhere: ModuleFinding = { ...failed, module: "other", message: "open" };
    const status = responseOf(evaluation({ findings: [failed, elsewhere], denials: [denial("a")] })).status;
    expect(status?.causes).toEqual([{ reason: "USHER-E01", message: "wrong 1" }]);
  });

  test.each<[string, Partial<AdmissionRequest>, object, object]>([
    [
      "a resource of a group",
      requestFor(deployment()),
      {},
      { name: "web", group: "apps", kind: "deployments" },
    ],
    ["an invalid object, by its kind", {}, { reason: "Invalid" }, { name: "web-0", group: "", kind: "Pod" }],
    [
      "no name yet",
      { name: "", object: { metadata: { generateName: "web-" } } },
      {},
      { name: "web-", group: "", kind: "pods" },
    ],
    [
      "no name at all",
      { name: "", object: { metadata: 5 } },
      {},
      { name: "Unknown", group: "", kind: "pods" },
    ],
    [
      "the module's text",
      {},
      { details: { name: "n1", kind: "nodes" } },
      { name: "n1", group: "", kind: "nodes" },
    ],
  ])("details of %s", (_what, change, says, details) => {
    const request = { ...requestFor(pod()), ...change };
    const response = responseOf(evaluation({ request, denials: [denial("a", says)] }));
    expect(response.status?.details).toEqual(details);
  });
});

test("the response is plain JSON, for any strings", () => {
  const hostile = "\ud800\u0000\u2028</script>";
  const draft = new Draft(pod());
  draft.set(["spec", hostile], hostile, undefined);
  const findings = [{ ...violation(0), message: hostile, warn: 1, audit: { key: "k", value: hostile } }];
  for (const denials of [[], [denial(hostile)]]) {
    const review: Json = reviewOf(responseOf(evaluation({ draft, findings, denials })));
    expect(JSON.parse(JSON.stringify(review))).toEqual(review);
  }
});

test("the text of a review parses to the review, for any content", () => {
  const text = fc.string({ unit: "binary" });
  const patch = fc.array(fc.record({ op: fc.constant("add" as const), path: text, value: fc.jsonValue() }), {
    maxLength: 2,
  });
  const status = fc.record({
    code: fc.integer(),
    reason: text,
    message: text,
    details: fc.record({ name: text, group: text, kind: text }),
    causes: fc.array(fc.record({ reason: text, message: text }), { maxLength: 2 }),
  });
  fc.assert(
    fc.property(
      fc.record({
        uid: text,
        allowed: fc.boolean(),
        patch,
        warnings: fc.array(text, { maxLength: 2 }),
        audit: fc.dictionary(text, text, { maxKeys: 2 }),
        status: fc.option(status, { nil: undefined }),
      }),
      (answer) => {
        expect(reviewText(answer as AdmissionResponse)).toBe(
          JSON.stringify(reviewOf(answer as AdmissionResponse)),
        );
      },
    ),
  );
});
