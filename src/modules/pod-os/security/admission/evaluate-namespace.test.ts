import { describe, expect, test } from "vitest";
import { outside } from "../../../../../test/builders/outside.ts";
import { controlledBy, pod } from "../../../../../test/builders/pod.ts";
import { asked, exception, labelled, podSecurityWith } from "../../../../../test/builders/pod-security.ts";
import { requestFor } from "../../../../../test/builders/request.ts";
import type { Fact } from "../../../../core/decision/need.ts";
import type { JsonObject } from "../../../../core/json.ts";

const HOST = { containers: [{ name: "c", image: "i" }], hostPID: true };
const PRIVILEGED = { containers: [{ name: "c", image: "i", securityContext: { privileged: true } }] };
type Labels = Readonly<Record<string, string>>;

interface Case {
  readonly labels: Labels;
  readonly old?: Labels;
  readonly pods?: readonly JsonObject[];
  readonly fact?: Fact;
  readonly configuration?: JsonObject;
  readonly exceptions?: readonly JsonObject[];
  readonly previewPolicies?: boolean;
}

async function judged({
  labels,
  old,
  pods = [],
  fact,
  configuration,
  exceptions = [],
  ...installation
}: Case) {
  const config = { apiVersion: "pod-security.admission.config.k8s.io/v1", kind: "PodSecurityConfiguration" };
  const podSecurity = {
    mode: "Replace",
    ...(configuration === undefined ? {} : { configuration: { ...config, ...configuration } }),
  };
  const assembly = podSecurityWith({ settings: { podSecurity }, exceptions, installation });
  const world = outside({ fact: () => fact ?? { found: [...pods], complete: true, total: pods.length } });
  const request = requestFor(labelled("shop", labels), {
    namespace: "shop",
    ...(old === undefined ? {} : { operation: "UPDATE", oldObject: labelled("shop", old) }),
  });
  return { ...(await asked(assembly, request, { world })), lists: world.fetches.flat() };
}

describe("labels", () => {
  test("rejects an invalid level and version like the API server", async () => {
    const { allowed, status } = await judged({ labels: { enforce: "foo", "warn-version": "1.36" } });
    expect(allowed).toBe(false);
    expect(status).toMatchObject({
      code: 422,
      reason: "Invalid",
      message:
        'Namespace "shop" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "foo": must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "1.36": must be "latest" or "v1.x"]',
      details: { kind: "Namespace", name: "shop" },
    });
    expect(status?.causes[0]?.field).toBe("metadata.labels[pod-security.kubernetes.io/enforce]");
  });

  test.each<[string, Labels, Labels, boolean]>([
    ["an error that was there before passes", { enforce: "foo", team: "a" }, { enforce: "foo" }, true],
    ["another error does not", { enforce: "bar" }, { enforce: "foo" }, false],
    ["nor does a new one", { enforce: "foo" }, {}, false],
    ["a corrected one passes", { enforce: "baseline" }, { enforce: "foo" }, true],
  ])("%s", async (_what, labels, old, allowed) => {
    expect((await judged({ labels, old })).allowed).toBe(allowed);
  });
});

describe("the preview", () => {
  test.each<[string, Labels, Labels, boolean]>([
    ["a stricter level", { enforce: "baseline" }, {}, true],
    ["another version", { enforce: "baseline", "enforce-version": "v1.30" }, { enforce: "baseline" }, true],
    [
      "a looser level of another version",
      { enforce: "baseline", "enforce-version": "v1.30" },
      { enforce: "restricted" },
      true,
    ],
    ["the same policy", { enforce: "baseline", team: "a" }, { enforce: "baseline" }, false],
    ["privileged", { enforce: "privileged" }, { enforce: "baseline" }, false],
    ["a looser level", { enforce: "baseline" }, { enforce: "restricted" }, false],
    ["other modes alone", { warn: "restricted", audit: "restricted" }, {}, false],
  ])("%s", async (_what, labels, old, lists) => {
    const asksFor = (await judged({ labels, old })).lists;
    expect(asksFor).toEqual(
      lists
        ? [{ list: { resource: "pods", namespace: "shop" }, limit: 20_000, share: 0.5, timeoutMs: 1_000 }]
        : [],
    );
  });

  test("no preview on CREATE", async () => {
    expect((await judged({ labels: { enforce: "restricted" } })).lists).toEqual([]);
  });

  test("pods are grouped by reasons, sorted by line, with the first name and a count", async () => {
    const pods = [
      pod({ name: "b", spec: HOST }),
      pod({ name: "z", spec: PRIVILEGED }),
      pod({ name: "a", spec: HOST }),
      pod({ name: "ok" }),
      pod({ name: "c", spec: HOST }),
    ];
    const { allowed, warnings, counts } = await judged({ labels: { enforce: "baseline" }, old: {}, pods });
    expect(allowed).toBe(true);
    expect(warnings).toEqual([
      'existing pods in namespace "shop" violate the new PodSecurity enforce level "baseline:latest"',
      "a (and 2 other pods): host namespaces",
      "z: privileged",
    ]);
    expect(counts).toEqual([]);
  });

  test("lists no pods if previews are off", async () => {
    const pods = [pod({ name: "a", spec: HOST })];
    const labels = { enforce: "baseline" };
    const { allowed, warnings, lists } = await judged({ labels, old: {}, pods, previewPolicies: false });
    expect([allowed, warnings, lists]).toEqual([true, [], []]);
  });

  test("one other pod is singular", async () => {
    const pods = ["a", "b"].map((name) => pod({ name, spec: HOST }));
    const { warnings } = await judged({ labels: { enforce: "baseline" }, old: {}, pods });
    expect(warnings).toContain("a (and 1 other pod): host namespaces");
  });

  test("previews one pod per controller before further replicas and the cut, with the true total", async () => {
    const owner = controlledBy("apps/v1", "ReplicaSet", "web");
    const replicas = Array.from({ length: 3_100 }, (_, i) => pod({ name: `web-${i}`, owner }));
    const pods = [...replicas, pod({ name: "zz", spec: HOST })];
    const { warnings } = await judged({ labels: { enforce: "baseline" }, old: {}, pods });
    expect(warnings).toEqual([
      "new PodSecurity enforce level only checked against the first 3000 of 3101 existing pods",
      'existing pods in namespace "shop" violate the new PodSecurity enforce level "baseline:latest"',
      "zz: host namespaces",
    ]);
  });

  test("of a list that was cut by time, the API server's total is named", async () => {
    const fact = { found: [pod({ name: "a" })], complete: false, total: 9_000 };
    const { warnings } = await judged({ labels: { enforce: "baseline" }, old: {}, fact });
    expect(warnings).toEqual([
      "new PodSecurity enforce level only checked against the first 1 of 9000 existing pods",
    ]);
  });

  test("a list that fails is reported, and the label passes", async () => {
    const fact = { failed: "timed out" };
    const { allowed, warnings } = await judged({ labels: { enforce: "baseline" }, old: {}, fact });
    expect(allowed).toBe(true);
    expect(warnings).toEqual(["failed to list pods while checking new PodSecurity enforce level"]);
  });

  test("pods with an exempt runtime class and with an exception are left out", async () => {
    const pods = [
      pod({ name: "a", spec: { ...HOST, runtimeClassName: "kata" } }),
      pod({ name: "b", spec: HOST }),
    ];
    const { warnings } = await judged({
      labels: { enforce: "baseline" },
      old: {},
      pods,
      configuration: { exemptions: { runtimeClasses: ["kata"] } },
      exceptions: [exception("e", { checks: ["hostNamespaces"] })],
    });
    expect(warnings).toEqual([]);
  });
});

describe("an exempt namespace", () => {
  const configuration = { exemptions: { namespaces: ["shop"] } };
  const text = (modes: string) =>
    `namespace "shop" is exempt from Pod Security, and the policy (${modes}) will be ignored`;
  test.each<[string, Labels, Labels | undefined, string[]]>([
    [
      "is warned about on CREATE",
      { enforce: "baseline", audit: "restricted" },
      undefined,
      [text("enforce=baseline:latest, audit=restricted:latest")],
    ],
    ["privileged is not", { enforce: "privileged" }, undefined, []],
    ["and where a preview would have run", { enforce: "baseline" }, {}, [text("enforce=baseline:latest")]],
    ["and not elsewhere", { enforce: "baseline", team: "a" }, { enforce: "baseline" }, []],
  ])("%s", async (_what, labels, old, warnings) => {
    const given = old === undefined ? { labels } : { labels, old };
    const response = await judged({ ...given, configuration });
    expect(response).toMatchObject({ allowed: true, warnings, lists: [] });
  });

  test("a policy that is the default one is not", async () => {
    const labels = { enforce: "baseline", warn: "privileged" };
    const defaults = { enforce: "baseline" };
    expect((await judged({ labels, configuration: { ...configuration, defaults } })).warnings).toEqual([]);
  });
});
