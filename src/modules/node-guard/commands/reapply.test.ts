import { expect, test } from "vitest";
import {
  byLabel,
  CONTROL_PLANE_LABEL,
  GROUP,
  guardAssembly,
  NOW,
  required,
} from "../../../../test/builders/guard.ts";
import type { Fact, Need } from "../../../core/decision/need.ts";
import type { JsonObject } from "../../../core/json.ts";
import type { CommandPlan, CommandRun } from "../../../core/module/command.ts";
import { nodeGuard } from "../index.ts";
import { reapplyCode } from "./reapply.ts";

const AWAY = required(byLabel(CONTROL_PLANE_LABEL, "DoesNotExist"));

function daemonSet(name: string, namespace: string, spec: JsonObject): JsonObject {
  const metadata = { name, namespace, uid: `uid-of-${name}`, resourceVersion: "7" };
  return { apiVersion: "apps/v1", kind: "DaemonSet", metadata, spec: { template: { spec } } };
}

function podOn(nodeName: string, owner: string, name = `${owner}-${nodeName}`): JsonObject {
  const ownerReferences = [{ kind: "DaemonSet", name: owner, uid: `uid-of-${owner}`, controller: true }];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "shop", ownerReferences },
    spec: { nodeName },
  };
}

const EXISTS = { tolerations: [{ operator: "Exists" }] };
const AGENT = daemonSet("agent", "shop", EXISTS);
const LISTS: Readonly<Record<string, readonly JsonObject[]>> = {
  "daemonsets.apps": [
    AGENT,
    daemonSet("steered", "shop", { ...EXISTS, ...AWAY }),
    daemonSet("workers", "shop", {}),
    daemonSet("proxy", "kube-system", EXISTS),
    daemonSet("exclusive", "shop", { ...EXISTS, nodeSelector: { [CONTROL_PLANE_LABEL]: "" } }),
  ],
  pods: [podOn("cp-0", "agent"), podOn("w-0", "agent"), podOn("cp-1", "agent"), podOn("cp-0", "proxy")],
};

function planOf(lists: (resource: string) => Fact, groups = [GROUP]): CommandPlan {
  const run = reapplyCode.run({
    args: {},
    flags: {},
    namespace: undefined,
    module: nodeGuard,
    assembly: guardAssembly({ groups }),
    live: true,
    changedOnly: false,
    parse: () => undefined,
    now: NOW,
    calledAs: "usher node-guard",
  }) as CommandRun;
  let step = run.next([]);
  while (!step.done)
    step = run.next(
      step.value.need.map((need: Need) =>
        "list" in need ? lists(need.list.resource) : { absent: "NotFound" as const },
      ),
    );
  return step.value as CommandPlan;
}

const found = (resource: string): Fact => ({ found: LISTS[resource] ?? [], complete: true });

test("names DaemonSets that would be steered if they were new, and the pods that would be deleted", () => {
  const { changes, errors } = planOf(found);
  expect(errors).toBeUndefined();
  expect(changes.map(({ of }) => of.name)).toEqual(["agent"]);
  expect(changes[0]?.outcome?.(AGENT, AGENT)).toEqual({
    changes: [
      "+ required node affinity, away from group ControlPlane",
      "- pod shop/agent-cp-0 on node cp-0 goes",
      "- pod shop/agent-cp-1 on node cp-1 goes",
    ],
  });
});

test("plans a patch of the stored object, and none if it is already steered", () => {
  const [change] = planOf(found).changes;
  const value = AWAY["affinity"];
  expect(change?.plan(AGENT)).toMatchObject({
    patch: [{ op: "add", path: "/spec/template/spec/affinity", value }],
    of: { resource: "daemonsets.apps", namespace: "shop", name: "agent" },
    resourceVersion: "7",
  });
  expect(change?.plan(daemonSet("agent", "shop", { ...EXISTS, ...AWAY }))).toBe("unchanged");
  expect(change?.plan(undefined)).toEqual({ failed: "not found" });
});

test("drops tolerations if the group steers so, and adds affinity only if one without a key is left", () => {
  const groups = [{ ...GROUP, steering: "DropToleration" }];
  const named = { key: CONTROL_PLANE_LABEL, operator: "Exists" };
  const other = { key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute" };
  const agent = daemonSet("agent", "shop", { tolerations: [named, other] });
  const keyless = daemonSet("keyless", "shop", { tolerations: [named, { operator: "Exists" }] });
  const { changes } = planOf(
    (resource) => ({ found: resource === "pods" ? [] : [agent, keyless], complete: true }),
    groups,
  );
  const dropped = "- tolerations that name taints of group ControlPlane";
  expect(changes.map((change, i) => change.outcome?.([agent, keyless][i], undefined))).toEqual([
    { changes: [dropped] },
    { changes: [dropped, "+ required node affinity, away from group ControlPlane"] },
  ]);
  expect(changes[0]?.plan(agent)).toMatchObject({
    patch: [{ op: "replace", path: "/spec/template/spec/tolerations", value: [other] }],
  });
  expect(changes[1]?.plan(keyless)).toMatchObject({
    patch: [
      { path: "/spec/template/spec/tolerations", value: [{ operator: "Exists" }] },
      { path: "/spec/template/spec/affinity", value: AWAY["affinity"] },
    ],
  });
});

test("changes nothing if pods could not be read, or the group does not steer", () => {
  const unread = planOf((resource) => (resource === "pods" ? { failed: "pods: 403" } : found(resource)));
  expect(unread).toMatchObject({ changes: [], errors: ["pods: 403"] });
  expect(planOf(found, [{ ...GROUP, steering: "Disabled" }]).changes).toEqual([]);
});
