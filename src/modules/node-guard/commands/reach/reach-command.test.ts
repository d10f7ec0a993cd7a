import { expect, test } from "vitest";
import { GROUP, guardAssembly, NOW } from "../../../../../test/builders/guard.ts";
import { at, type JsonObject, listAt } from "../../../../core/json.ts";
import type { CommandRun } from "../../../../core/module/command.ts";
import { nodeGuard } from "../../index.ts";
import { reachCode } from "./reach-command.ts";

const binding = (namespace: string): JsonObject => ({
  metadata: { name: "deploy", namespace },
  roleRef: { kind: "ClusterRole", name: "edit" },
  subjects: [{ kind: "User", name: `user-of-${namespace}` }],
});
const LISTS: Readonly<Record<string, readonly JsonObject[]>> = {
  "clusterroles.rbac.authorization.k8s.io": [
    { metadata: { name: "edit" }, rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["create"] }] },
  ],
  "rolebindings.rbac.authorization.k8s.io": ["kube-system", "ops-1", "team-a"].map(binding),
};

test("a grant in a namespace that only a prefix authorises is listed, whether or not namespaces are known", () => {
  const run = reachCode.run({
    args: {},
    flags: {},
    namespace: undefined,
    module: nodeGuard,
    assembly: guardAssembly({ groups: [{ ...GROUP, workloads: ["ops-*/default"] }] }),
    live: true,
    changedOnly: false,
    parse: () => undefined,
    now: NOW,
    calledAs: "usher node-guard",
  }) as CommandRun;
  let step = run.next([]);
  while (!step.done)
    step = run.next(
      step.value.need.map((need) => ({
        found: "list" in need ? (LISTS[need.list.resource] ?? []) : [],
        complete: true,
      })),
    );
  const subjects = listAt("data" in step.value ? step.value.data : undefined, "subjects");
  expect(subjects.map((one) => [at(one, "subject", "name"), at(one, "namespaces")])).toEqual([
    ["user-of-kube-system", ["kube-system"]],
    ["user-of-ops-1", ["ops-1"]],
  ]);
});
