import { describe, expect, test } from "vitest";
import { askGuard, creating, user } from "../../../../test/builders/guard.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import { DEFAULT_INSTALLATION } from "../../../core/installation/installation.ts";
import { matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import { isLifecycleIdentity, LIFECYCLE_IDENTITIES } from "../claims/node-labels.ts";
import { ADMINISTRATORS } from "./administrators.ts";
import { builtInGroups, KUBERNETES_ENTRIES } from "./built-in.ts";
import { type BuiltInEntry, OPENSHIFT_ENTRIES } from "./openshift-entries.ts";
import { EntryIndex } from "./principals.ts";

const LISTS = { Kubernetes: KUBERNETES_ENTRIES, OpenShift: OPENSHIFT_ENTRIES };
const SOURCE = /^[\w.-]+\/[\w.-]+ \S+\.(go|yaml)$/;

describe.each(["Kubernetes", "OpenShift"] as const)("the built-in list of %s", (platform) => {
  const [group] = builtInGroups(platform, DEFAULT_INSTALLATION);

  test("names the upstream file of every entry, and no entry is removed without a release as deprecated", () => {
    for (const { entry, source } of LISTS[platform]) expect(source, entry).toMatch(SOURCE);
    expect(historyProblems(LISTS[platform])).toEqual([]);
  });

  test("is read completely", () => {
    const own = platform === "OpenShift" ? 2 : 1;
    expect(group?.entries).toHaveLength(LISTS[platform].length + own);
  });

  test("selects control-plane nodes with any value of the label", () => {
    for (const value of ["", "true"])
      expect(
        matches(group?.selector?.compiled ?? { kind: "nothing" }, {
          "node-role.kubernetes.io/control-plane": value,
        }),
      ).toBe(true);
    expect(matches(group?.selector?.compiled ?? { kind: "everything" }, {})).toBe(false);
  });

  test("has usher as a workload, never as an actor", () => {
    const index = new EntryIndex(group?.entries ?? [], "Namespace");
    expect(index.pod("usher-system", "usher")?.entry).toBe("usher-system/usher");
    expect(index.actor("system:serviceaccount:usher-system:usher", [])).toBeUndefined();
    expect(isLifecycleIdentity("system:serviceaccount:usher-system:usher")).toBe(false);
  });

  test("has the operand of ProjectRequestLimit as a workload on OpenShift only, by account too", () => {
    for (const scope of ["Namespace", "Exact"] as const) {
      const index = new EntryIndex(group?.entries ?? [], scope);
      const found = index.pod("openshift-project-request-limit-operator", "project-request-limit-admission");
      expect(found !== undefined).toBe(platform === "OpenShift");
    }
  });

  test("has the scheduler as an actor, and has no mode", () => {
    const index = new EntryIndex(group?.entries ?? [], "Namespace");
    expect(index.actor("system:kube-scheduler", [])).toBeDefined();
    expect(group?.mode).toBeUndefined();
  });
});

test.each([
  ["openshift-kube-apiserver-operator", "kube-apiserver-operator", "openshift-kube-apiserver"],
  ["openshift-etcd-operator", "etcd-operator", "openshift-etcd"],
  ["openshift-cluster-version", "default", "openshift-cluster-version"],
  ["openshift-cluster-version", "cluster-version-operator", "openshift-cluster-version"],
  ["kube-system", "job-controller", "openshift-cluster-version"],
])("on OpenShift %s/%s may assign pods of %s, as upgrades do", (namespace, name, of) => {
  const [group] = builtInGroups("OpenShift", DEFAULT_INSTALLATION);
  const index = new EntryIndex(group?.entries ?? [], "Namespace");
  expect(index.actor(`system:serviceaccount:${namespace}:${name}`, [])).toBeDefined();
  expect(index.pod(of, "default")).toBeDefined();
});

describe("OpenShift's built-in list as it is, in Enable", () => {
  const asked = (request: AdmissionRequest, emergencyUsers: string[]) =>
    askGuard(request, {
      objects: [
        {
          apiVersion: "scheduling.openshift.io/v1alpha1",
          kind: "NodeSchedulingPolicy",
          metadata: { name: "cluster" },
          spec: { groups: [{ name: "ControlPlane", mode: "Enable", emergencyUsers }] },
        },
      ],
      installation: { settings: { "node-guard": { builtIn: "OpenShift" } } },
    });
  const commands: [string, string][] = [
    ["oc debug node/cp-0", "openshift-debug-x7k2p"],
    ["oc adm must-gather --node-name cp-0", "openshift-must-gather-x7k2p"],
  ];
  const admins = ADMINISTRATORS.filter(({ platform }) => platform === "OpenShift").map(({ user }) => user);
  const rows = commands.flatMap(([command, namespace]) =>
    admins.map((admin) => [command, admin, namespace] as const),
  );

  test.each(rows)(
    "%s of %s needs the emergency entry that list and learn offer",
    async (_, admin, namespace) => {
      const request = creating({ nodeName: "cp-0" }, user(admin, "system:masters"), { namespace });
      expect(await asked(request, [])).toMatchObject({ allowed: false, code: 403 });
      expect(await asked(request, admins)).toMatchObject({
        allowed: true,
        audit: { "node-guard.rule": "vouched" },
      });
    },
  );

  test("lets oc adm must-gather choose a control-plane node by its label, without any emergency entry", async () => {
    const spec = { nodeSelector: { "node-role.kubernetes.io/control-plane": "" } };
    const request = creating(spec, user("kube:admin"), { namespace: "openshift-must-gather-x7k2p" });
    expect((await asked(request, [])).allowed).toBe(true);
  });
});

test("administrators have sources", () => {
  for (const { source } of ADMINISTRATORS) expect(source).toMatch(SOURCE);
});

test("None has no group", () => {
  expect(builtInGroups("None", DEFAULT_INSTALLATION)).toEqual([]);
});

test.each<[string, Partial<BuiltInEntry>, number]>([
  ["of the next release", { since: "99.0" }, 0],
  ["deprecated", { deprecated: "1.30" }, 0],
  ["removed a release after it was deprecated", { deprecated: "1.30", removed: "1.31" }, 0],
  ["removed immediately", { removed: "1.31" }, 1],
  ["deprecated and removed in one release", { deprecated: "1.31", removed: "1.31" }, 1],
  ["1.9 comes before 1.10", { deprecated: "1.9", removed: "1.10" }, 0],
  ["no release", { since: "new" }, 1],
])("the history of an entry: %s", (_case, more, problems) => {
  const entry: BuiltInEntry = { entry: "a/b", list: "workloads", since: "1.6", source: "x", ...more };
  expect(historyProblems([entry])).toHaveLength(problems);
});

test("node-lifecycle identities have sources", () => {
  for (const { username, source } of LIFECYCLE_IDENTITIES) {
    expect(source).toMatch(SOURCE);
    expect(isLifecycleIdentity(username)).toBe(true);
  }
});

/** Problems of a list's history: an entry may be removed only after one release in which it was deprecated. */
function historyProblems(entries: readonly BuiltInEntry[]): string[] {
  return entries.flatMap(({ entry, since, deprecated, removed }) => {
    const releases = [since, deprecated, removed].filter((one) => one !== undefined);
    if (!releases.every((one) => RELEASE.test(one))) return [`${entry}: a release must be such as 1.30`];
    if (removed === undefined) return [];
    if (deprecated === undefined) return [`${entry}: removed in ${removed} without a release as deprecated`];
    return releaseNumber(removed) > releaseNumber(deprecated)
      ? []
      : [`${entry}: removed in ${removed}, and deprecated only in ${deprecated}`];
  });
}

const RELEASE = /^\d+\.\d+$/;

function releaseNumber(release: string): number {
  const [major = 0, minor = 0] = release.split(".").map(Number);
  return major * 1_000 + minor;
}
