import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { assemblyOf, atOnce, callOf } from "../../../../test/builders/evaluation.ts";
import { outside } from "../../../../test/builders/outside.ts";
import { SHOP } from "../../../../test/builders/placed.ts";
import { controlledBy, pod, workload } from "../../../../test/builders/pod.ts";
import { came, clusterPolicy } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import { evaluate } from "../../../core/evaluate/evaluate.ts";
import { DEFAULT_INSTALLATION } from "../../../core/installation/installation.ts";
import type { JsonObject } from "../../../core/json.ts";
import { placement } from "../index.ts";

const SELECTED = { app: "etcd" };
const POOL = clusterPolicy("pool", {
  namespaceSelector: {},
  podSelector: { matchLabels: SELECTED },
  nodeSelector: { pool: "etcd" },
  enforcement: "Refuse",
});
const ASSEMBLY = assemblyOf([placement], [SHOP, POOL].map(came), {
  ...DEFAULT_INSTALLATION,
  settings: { placement: { trustedControllers: ["argo/rollouts"] } },
});

const API: Readonly<Record<string, string>> = {
  Pod: "v1",
  ReplicationController: "v1",
  PodTemplate: "v1",
  ReplicaSet: "apps/v1",
  Deployment: "apps/v1",
  StatefulSet: "apps/v1",
  DaemonSet: "apps/v1",
  Job: "batch/v1",
  CronJob: "batch/v1",
  Etcd: "druid.gardener.cloud/v1alpha1",
};
const KINDS = Object.keys(API).filter((kind) => kind !== "Etcd");
const OWNERS = [undefined, "ReplicaSet", "Deployment", "DaemonSet", "Job", "CronJob", "Etcd"] as const;
const TRUSTED = [
  "system:kube-controller-manager",
  "system:serviceaccount:kube-system:daemon-set-controller",
  "system:serviceaccount:kube-system:deployment-controller",
  "system:serviceaccount:kube-system:replicaset-controller",
  "system:serviceaccount:argo:rollouts",
];
const OTHERS = [
  "jane",
  "system:serviceaccount:shop:daemon-set-controller",
  "system:serviceaccount:kube-system:default",
];

interface State {
  readonly selected: boolean;
  readonly meets: boolean;
  readonly image?: string;
}

const objectOf = (kind: string, owner: string | undefined, { selected, meets, image = "a" }: State) => {
  const parts = {
    ...(selected ? { labels: SELECTED } : {}),
    ...(owner === undefined ? {} : { owner: controlledBy(API[owner] ?? "", owner, "boss") }),
    spec: { containers: [{ name: "c", image }], nodeSelector: { pool: meets ? "etcd" : "web" } },
  };
  return kind === "Pod" ? pod(parts) : workload(API[kind] ?? "", kind, parts);
};

const admits = (username: string, object: JsonObject, oldObject?: JsonObject) => {
  const request = requestFor(object, {
    userInfo: { username, groups: [] },
    ...(oldObject === undefined ? {} : { operation: "UPDATE" as const, oldObject }),
  });
  const call = callOf(ASSEMBLY, request, { phase: "validate" });
  return atOnce(evaluate(call, outside())).denials.length === 0;
};

/** The rule once more: whether a controller of such an owner writes such objects from its template. */
function isFromTemplate(kind: string, owner: string | undefined): boolean {
  if (kind === "Pod") return owner === "DaemonSet";
  if (kind === "ReplicaSet") return owner !== undefined;
  return owner !== undefined && owner !== "CronJob" && owner !== "Etcd";
}

const PRINCIPALS = [...TRUSTED, ...OTHERS];

test.each(KINDS)("CREATE of %s, with every owner, by every principal", (kind) => {
  for (const owner of OWNERS)
    for (const username of PRINCIPALS)
      for (const selected of [true, false])
        for (const meets of [true, false]) {
          const exempt = isFromTemplate(kind, owner) && TRUSTED.includes(username);
          const admitted = !selected || meets || exempt;
          const object = objectOf(kind, owner, { selected, meets });
          expect([owner, username, selected, meets, admits(username, object)]).toEqual([
            owner,
            username,
            selected,
            meets,
            admitted,
          ]);
        }
});

const STATES: readonly State[] = [true, false].flatMap((selected) =>
  [true, false].map((meets) => ({ selected, meets })),
);

test.each(KINDS)("UPDATE of %s, with every change of owner, labels and spec", (kind) => {
  for (const [before, after] of OWNERS.flatMap((owner) => [
    [owner, owner],
    [undefined, owner],
    [owner, undefined],
  ]))
    for (const username of ["jane", TRUSTED[0] ?? ""])
      for (const old of STATES)
        for (const now of STATES.flatMap((state) => [state, { ...state, image: "b" }])) {
          const exempt = isFromTemplate(kind, after) && username !== "jane";
          const unchanged =
            old.selected === now.selected && old.meets === now.meets && now.image === undefined;
          const metBefore = old.meets || !old.selected;
          const admitted = exempt || unchanged || !now.selected || now.meets || !metBefore;
          const [object, oldObject] = [objectOf(kind, after, now), objectOf(kind, before, old)];
          expect([before, after, username, old, now, admits(username, object, oldObject)]).toEqual([
            before,
            after,
            username,
            old,
            now,
            admitted,
          ]);
        }
});

const MIRROR = { "kubernetes.io/config.mirror": "x" };
const without = { labels: SELECTED, spec: { nodeSelector: { pool: "web" } } };
const DAEMON_SET = controlledBy("apps/v1", "DaemonSet", "boss");
const DEPLOYMENT = controlledBy("apps/v1", "Deployment", "boss");
const CONTROLLER = TRUSTED[0] ?? "";

/** Each row of the README's table, with a request for it. */
test.each<[row: string, username: string, object: JsonObject, oldObject: JsonObject | undefined, boolean]>([
  ["CREATE | no owner | any | judged", "jane", pod(without), undefined, false],
  [
    "CREATE | a pod of a DaemonSet, a ReplicaSet with an owner, another template whose owner is a kind that placement covers | a controller | not judged",
    CONTROLLER,
    pod({ ...without, owner: DAEMON_SET }),
    undefined,
    true,
  ],
  [
    "CREATE | the same | any other | judged",
    "jane",
    workload("apps/v1", "DaemonSet", { ...without, owner: DEPLOYMENT }),
    undefined,
    false,
  ],
  [
    "CREATE | a pod of any other owner, a Job of a CronJob, a template of an unknown owner | any | judged",
    CONTROLLER,
    pod({ ...without, owner: controlledBy("apps/v1", "ReplicaSet", "boss") }),
    undefined,
    false,
  ],
  [
    "CREATE | a pod that names its node | any | judged, its owner as above",
    "jane",
    pod({ ...without, spec: { nodeName: "n1" } }),
    undefined,
    false,
  ],
  [
    "CREATE | a mirror pod | a kubelet | not judged",
    "system:node:n1",
    pod({ ...without, annotations: MIRROR }),
    undefined,
    true,
  ],
  [
    "CREATE | a mirror pod | any other | judged",
    "jane",
    pod({ ...without, annotations: MIRROR }),
    undefined,
    false,
  ],
  [
    "UPDATE | labels and spec of the pod or template unchanged | any | not judged",
    "jane",
    pod({ ...without, annotations: { a: "b" } }),
    pod(without),
    true,
  ],
  [
    "UPDATE | changed, and the policy selected it before | any other | judged by what it no longer meets",
    "jane",
    pod({ ...without, metadata: { labels: { ...SELECTED, more: "x" } } }),
    pod(without),
    true,
  ],
  [
    "UPDATE | changed, and the policy did not select it before | any other | judged",
    "jane",
    pod(without),
    pod({ spec: { nodeSelector: { pool: "web" } } }),
    false,
  ],
  [
    "UPDATE | changed, with an owner as in the second row | a controller | not judged",
    CONTROLLER,
    workload("apps/v1", "ReplicaSet", { ...without, owner: DEPLOYMENT }),
    workload("apps/v1", "ReplicaSet", { owner: DEPLOYMENT, labels: SELECTED }),
    true,
  ],
  [
    "any | being deleted, or without a pod template | any | not judged",
    "jane",
    workload("apps/v1", "DaemonSet", { ...without, metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }),
    undefined,
    true,
  ],
])("%s", (row, username, object, oldObject, admitted) => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  expect(readme).toContain(`| ${row} |`);
  expect(admits(username, object, oldObject)).toBe(admitted);
});

test("the table of the README has no further rows", () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const rows = readme.split("\n").filter((line) => /^\| (CREATE|UPDATE|any) \|/.test(line));
  expect(rows).toHaveLength(12);
});
