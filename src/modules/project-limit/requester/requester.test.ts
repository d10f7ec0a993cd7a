import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  judged,
  namespaceRequest,
  project,
  projects,
  userInfo,
} from "../../../../test/builders/project-limit.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import type { JsonObject } from "../../../core/json.ts";
import { requesterOf } from "../projects.ts";

const SPEC = { limits: [{ maxProjects: 2 }], namespaces: {}, trustedAnnotators: ["portal"] };
const BOB = userInfo("bob");
const PORTAL = userInfo("portal");
const ROOT = userInfo("root", ["system:masters"]);
const ACCOUNT = userInfo("system:serviceaccount:shop:ci");

async function stamped(request: AdmissionRequest, spec: JsonObject = SPEC) {
  const { draft, findings } = await judged(spec, request, {}, "mutate");
  return {
    requester: requesterOf(draft.object),
    warnings: findings.filter(({ warn }) => warn !== undefined),
  };
}

async function codes(
  request: AdmissionRequest,
  spec: JsonObject = SPEC,
  has: Parameters<typeof projects> = ["bob", 0],
) {
  const { denials } = await judged(spec, request, { changes: projects(...has) });
  return denials.map(({ code, message }) => `${code} ${/USHER-Q\d+/.exec(message)}`);
}

function update(user: typeof BOB, before: string | undefined, after: string | undefined, subResource = "") {
  return namespaceRequest(user, project("shop", after), {
    operation: "UPDATE",
    subResource,
    oldObject: project("shop", before),
  });
}

describe("a new namespace", () => {
  test.each([
    ["without a requester", BOB, undefined, "bob"],
    ["with a forged one", BOB, "eve", "bob"],
    ["of a service account without a maximum", ACCOUNT, "eve", ACCOUNT.username],
    ["of an exempt user that names none", ROOT, undefined, "root"],
    ["of an exempt user that names one", ROOT, "eve", "eve"],
    ["of a trusted annotator that names one", PORTAL, "eve", "eve"],
    ["of a trusted annotator that names none", PORTAL, undefined, "portal"],
    ["of a trusted annotator that names an empty one", PORTAL, "", "portal"],
  ])("%s is annotated", async (_, user, written, requester) => {
    expect((await stamped(namespaceRequest(user, project("shop", written)))).requester).toBe(requester);
  });

  test("nothing is annotated unless namespaces are evaluated", async () => {
    const { namespaces: _, ...spec } = SPEC;
    expect((await stamped(namespaceRequest(BOB), spec)).requester).toBeUndefined();
    expect(await codes(namespaceRequest(BOB, project("a", "eve")), spec)).toEqual([]);
  });

  test.each([
    ["its own annotation", BOB, "bob", []],
    ["none: mutation was bypassed", BOB, undefined, ["403 USHER-Q04"]],
    ["a forged one", BOB, "eve", ["403 USHER-Q04"]],
    ["a forged one of a service account without a maximum", ACCOUNT, "eve", ["403 USHER-Q04"]],
    ["one of an exempt user's choice", ROOT, "eve", []],
    ["one of a trusted annotator's choice", PORTAL, "eve", []],
  ])("validation sees %s", async (_, user, written, result) => {
    expect(await codes(namespaceRequest(user, project("shop", written)))).toEqual(result);
  });

  test("without a requester is refused with the reason, and not as if its creator had forged it", async () => {
    const { findings } = await judged(SPEC, namespaceRequest(BOB, project("shop", undefined)));
    expect(findings.map(({ message }) => message)).toEqual([
      'namespaces "shop" is forbidden: openshift.io/requester is missing: usher did not answer when it was to be set; try again',
    ]);
  });

  test("is limited by its requester, with any name", async () => {
    for (const name of ["shop", "kube-shop", "openshift-shop", "default"])
      expect(await codes(namespaceRequest(BOB, project(name, "bob")), SPEC, ["bob", 2])).toEqual([
        "403 USHER-Q01",
      ]);
  });

  test("of a trusted annotator counts for the named user, whose groups are unknown", async () => {
    const spec = { ...SPEC, limits: [{ groups: ["devs"] }, { maxProjects: 2 }] };
    const request = namespaceRequest(userInfo("portal", ["devs"]), project("shop", "bob"));
    const { findings, denials } = await judged(spec, request, { changes: projects("bob", 0) });
    expect(denials).toEqual([]);
    expect(findings.filter(({ warn }) => warn !== undefined).map(({ message }) => message)).toEqual([
      "groups of user bob are not known: rules with groups do not match",
    ]);
    expect(await codes(request, spec, ["bob", 2])).toEqual(["403 USHER-Q01"]);
  });
});

test.each([
  ["root", ["root"], []],
  ["bob", ["root"], ["403 USHER-Q01"]],
  ["system:serviceaccount:kube-system:job", [], []],
  ["system:serviceaccount:shop:job", [], ["403 USHER-Q01"]],
])(
  "a namespace that a trusted annotator creates for %s is evaluated as that user's, exempt or not",
  async (user, users, result) => {
    const spec = {
      ...SPEC,
      limits: [{ maxProjects: 0 }],
      maxProjectsForServiceAccounts: 0,
      exempt: { users },
    };
    expect(await codes(namespaceRequest(PORTAL, project("shop", user)), spec)).toEqual(result);
  },
);

describe.each(["", "status", "finalize"])("an update of namespaces/%s", (subResource) => {
  test.each([
    ["leaves it", BOB, "bob", "bob", []],
    ["changes it", BOB, "bob", "eve", ["403 USHER-Q04"]],
    ["adds it", BOB, undefined, "eve", ["403 USHER-Q04"]],
    ["removes it past mutation", BOB, "bob", undefined, ["403 USHER-Q04"]],
    ["changes it, by a service account without a maximum", ACCOUNT, "bob", "eve", ["403 USHER-Q04"]],
    ["changes it, by an exempt user", ROOT, "bob", "eve", []],
    ["removes it, by an exempt user", ROOT, "bob", undefined, []],
    ["changes it, by a trusted annotator", PORTAL, "bob", "eve", []],
  ])("%s", async (_, user, before, after, result) => {
    expect(await codes(update(user, before, after, subResource))).toEqual(result);
  });

  test.each([
    ["is undone", BOB, "bob", undefined, "bob"],
    ["by an empty value is undone", BOB, "bob", "", "bob"],
    ["by an exempt user stays", ROOT, "bob", undefined, undefined],
    ["by a trusted annotator stays", PORTAL, "bob", undefined, undefined],
    ["of nothing is ignored", BOB, undefined, undefined, undefined],
  ])("a removal %s", async (_, user, before, after, requester) => {
    const found = await stamped(update(user, before, after, subResource));
    expect(found.requester).toBe(requester);
    expect(found.warnings).toHaveLength(requester === undefined ? 0 : 1);
  });

  test("a change is left for validation to refuse", async () => {
    expect((await stamped(update(BOB, "bob", "eve", subResource))).requester).toBe("eve");
  });
});

test("both phases answer for any object", async () => {
  const hostile = fc.oneof(fc.jsonValue(), fc.constant("x"), fc.constant(null)) as fc.Arbitrary<JsonObject>;
  const shape = fc.oneof(
    hostile.map((annotations) => ({ metadata: { name: "a", annotations } })),
    hostile.map((metadata) => ({ metadata })),
    hostile.map((requester) => ({ metadata: { annotations: { "openshift.io/requester": requester } } })),
  ) as fc.Arbitrary<JsonObject>;
  await fc.assert(
    fc.asyncProperty(
      shape,
      shape,
      fc.constantFrom("CREATE", "UPDATE", "DELETE"),
      async (object, oldObject, operation) => {
        for (const phase of ["mutate", "validate"] as const) {
          const change = {
            operation,
            object: structuredClone(object),
            oldObject,
          } as Partial<AdmissionRequest>;
          const { findings } = await judged(
            SPEC,
            namespaceRequest(BOB, project("a", "b"), change),
            {},
            phase,
          );
          expect(findings.filter(({ code }) => code === "USHER-E01")).toEqual([]);
        }
      },
    ),
    { numRuns: 200 },
  );
});
