// One table for each filter. The comparison with kube-scheduler itself is in test/scheduling.
import { describe, expect, test } from "vitest";
import { HOSTILE_VALUES, replaced } from "../../../test/builders/hostile.ts";
import {
  EMPTY_WORLD,
  schedulingNode as node,
  placedPod,
  schedulingPod as pod,
  requesting,
  verdicts,
} from "../../../test/builders/scheduling.ts";
import type { Json, JsonObject } from "../json.ts";
import { RELEASES } from "./releases.ts";
import { feasibilityByClass, feasibleNodes, prepareWorld } from "./scheduling.ts";
import type { SchedulingWorld } from "./world.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const ZONE = "topology.kubernetes.io/zone";

type World = Partial<SchedulingWorld>;
type Row = readonly [says: string, pod: JsonObject, world: World, verdict: string];

/** Each row is evaluated on the node `n`. */
const TABLES: Readonly<Record<string, readonly Row[]>> = {
  Scheduler: [
    ["evaluates a pod of the default scheduler", pod({ schedulerName: "default-scheduler" }), {}, "fits"],
    [
      "leaves a pod of another scheduler open",
      pod({ schedulerName: "volcano" }),
      {},
      "unknown Scheduler: the scheduler volcano decides, and its configuration is not known",
    ],
    [
      "knows the scheduler that the world names",
      pod({ schedulerName: "mine" }),
      { schedulerName: "mine" },
      "fits",
    ],
    [
      "leaves a member of a group open",
      pod({ schedulingGroup: { podGroupName: "g" } }),
      {},
      "unknown Scheduler: the pod is scheduled together with its group",
    ],
  ],
  SchedulingGates: [
    [
      "names the gates",
      pod({ schedulingGates: [{ name: "a" }, { name: "b" }] }),
      {},
      "SchedulingGates: waiting for scheduling gates: [a b]",
    ],
  ],
  NodeName: [
    ["accepts the node that the pod names", pod({ nodeName: "n" }), {}, "fits"],
    [
      "considers no other since 1.37",
      pod({ nodeName: "m" }),
      {},
      "NodeName: node(s) didn't satisfy plugin(s) [NodeName]",
    ],
    [
      "rejects each other before",
      pod({ nodeName: "m" }),
      { release: "1.36" },
      "NodeName: node(s) didn't match the requested node name",
    ],
  ],
  NodeUnschedulable: [
    [
      "rejects a cordoned node",
      pod(),
      { nodes: [node("n", { spec: { unschedulable: true } })] },
      "NodeUnschedulable: node(s) were unschedulable",
    ],
    [
      "passes pods that tolerate the taint of cordoned nodes",
      pod({ tolerations: [{ key: "node.kubernetes.io/unschedulable", operator: "Exists" }] }),
      { nodes: [node("n", { spec: { unschedulable: true } })] },
      "fits",
    ],
    [
      "runs before NodeName until 1.36",
      pod({ nodeName: "m" }),
      { release: "1.36", nodes: [node("n", { spec: { unschedulable: true } })] },
      "NodeUnschedulable: node(s) were unschedulable",
    ],
  ],
  TaintToleration: [
    ["rejects a taint", pod(), tainted("edge"), "TaintToleration: node(s) had untolerated taint(s)"],
    ["tolerates it", pod({ tolerations: [{ key: "dedicated", value: "edge" }] }), tainted("edge"), "fits"],
    ["ignores a preference", pod(), tainted("edge", "PreferNoSchedule"), "fits"],
    [
      "leaves a comparison open, which a feature gate allows",
      pod({ tolerations: [{ key: "dedicated", operator: "Gt", value: "4" }] }),
      tainted("5"),
      "unknown TaintToleration: a toleration compares numbers, which counts only with the feature gate TaintTolerationComparisonOperators",
    ],
    [
      "knows no comparison in 1.34",
      pod({ tolerations: [{ key: "dedicated", operator: "Gt", value: "4" }] }),
      { ...tainted("5"), release: "1.34" },
      "TaintToleration: node(s) had untolerated taint(s)",
    ],
  ],
  NodeAffinity: [
    [
      "matches the labels of nodeSelector",
      pod({ nodeSelector: { disk: "ssd" } }),
      labelled({ disk: "ssd" }),
      "fits",
    ],
    [
      "rejects other labels",
      pod({ nodeSelector: { disk: "ssd" } }),
      labelled({ disk: "hdd" }),
      "NodeAffinity: node(s) didn't match Pod's node affinity/selector",
    ],
    [
      "compares numbers",
      pod(affinity({ matchExpressions: [{ key: "size", operator: "Gt", values: ["4"] }] })),
      labelled({ size: "5" }),
      "fits",
    ],
    [
      "considers only nodes that all terms name",
      pod(affinity({ matchFields: [{ key: "metadata.name", operator: "In", values: ["m"] }] })),
      {},
      "NodeAffinity: node(s) didn't satisfy plugin(s) [NodeAffinity]",
    ],
    [
      "rejects names that contradict each other for all nodes",
      pod(
        affinity({
          matchFields: ["m", "n"].map((name) => ({ key: "metadata.name", operator: "In", values: [name] })),
        }),
      ),
      {},
      "NodeAffinity: pod affinity terms conflict",
    ],
    [
      "has no node for two names by two filters",
      pod({
        nodeName: "n",
        ...affinity({ matchFields: [{ key: "metadata.name", operator: "In", values: ["m"] }] }),
      }),
      {},
      "NodeAffinity: node(s) didn't satisfy plugin(s) [NodeAffinity NodeName] simultaneously",
    ],
  ],
  NodePorts: [
    [
      "takes a free port",
      pod(ports({ hostPort: 80 })),
      { pods: [placedPod("n", ports({ hostPort: 81 }))] },
      "fits",
    ],
    [
      "rejects a port that is taken",
      pod(ports({ hostPort: 80 })),
      { pods: [placedPod("n", ports({ hostPort: 80, hostIP: "10.0.0.1" }))] },
      "NodePorts: node(s) didn't have free ports for the requested pod ports",
    ],
    [
      "distinguishes addresses and protocols",
      pod(ports({ hostPort: 80, hostIP: "10.0.0.1" })),
      {
        pods: [
          placedPod("n", ports({ hostPort: 80, hostIP: "10.0.0.2" })),
          placedPod("n", ports({ hostPort: 80, protocol: "UDP" })),
        ],
      },
      "fits",
    ],
    [
      "is open without the placed pods",
      pod(ports({ hostPort: 80 })),
      { pods: undefined },
      "unknown NodePorts: the pods of the nodes are not in the view",
    ],
  ],
  NodeResourcesFit: [
    ["accepts free resources", pod({ containers: [requesting({ cpu: "4" })] }), {}, "fits"],
    [
      "names every missing resource",
      pod({
        containers: [
          requesting({ cpu: "5", memory: "9Gi", "ephemeral-storage": "1", "example.com/gpu": "1" }),
        ],
      }),
      {},
      "NodeResourcesFit: Insufficient cpu, Insufficient memory, Insufficient ephemeral-storage, Insufficient example.com/gpu",
    ],
    [
      "counts placed pods, except ended ones",
      pod({ containers: [requesting({ cpu: "3" })] }),
      {
        pods: [
          placedPod("n", { containers: [requesting({ cpu: "1" })] }),
          { ...placedPod("n", { containers: [requesting({ cpu: "4" })] }), status: { phase: "Succeeded" } },
        ],
      },
      "fits",
    ],
    [
      "uses the larger of init containers and containers, and adds sidecars to both",
      pod({
        initContainers: [
          { ...(requesting({ cpu: "1" }) as JsonObject), restartPolicy: "Always" },
          requesting({ cpu: "3500m" }),
        ],
        containers: [requesting({ cpu: "1" })],
      }),
      {},
      "NodeResourcesFit: Insufficient cpu",
    ],
    [
      "adds overhead",
      pod({ containers: [requesting({ cpu: "4" })], overhead: { cpu: "1m" } }),
      {},
      "NodeResourcesFit: Insufficient cpu",
    ],
    [
      "puts resources of the pod over those of containers",
      pod({ containers: [requesting({ cpu: "9" })], resources: { requests: { cpu: "1" } } }),
      {},
      "fits",
    ],
    [
      "ignores pod-level resources in 1.33",
      pod({ containers: [requesting({ cpu: "9" })], resources: { requests: { cpu: "1" } } }),
      { release: "1.33" },
      "NodeResourcesFit: Insufficient cpu",
    ],
    [
      "counts the larger of spec and allocation during a resize",
      pod({ containers: [requesting({ cpu: "2" })] }),
      {
        pods: [
          {
            ...placedPod("n", { containers: [requesting({ cpu: "1" })] }),
            status: {
              containerStatuses: [
                { name: "main", allocatedResources: { cpu: "3" }, resources: { requests: { cpu: "1" } } },
              ],
            },
          },
        ],
      },
      "NodeResourcesFit: Insufficient cpu",
    ],
    [
      "counts pods",
      pod(),
      { nodes: [node("n", { allocatable: { pods: "1" } })], pods: [placedPod("n")] },
      "NodeResourcesFit: Too many pods",
    ],
    [
      "always fits a request of 0",
      pod({ containers: [requesting({ cpu: "0", "example.com/gpu": "0" })] }),
      { nodes: [node("n", { allocatable: { cpu: "0" } })] },
      "fits",
    ],
    [
      "rejects a node without allocatable",
      pod(),
      { nodes: [{ metadata: { name: "n" } }] },
      "NodeResourcesFit: Too many pods",
    ],
    [
      "is open beyond exact numbers",
      pod({ containers: [requesting({ memory: "1" })] }),
      { nodes: [node("n", { allocatable: { memory: "16Ei" } })] },
      "unknown NodeResourcesFit: the amount of memory on the node is not known",
    ],
    [
      "is open for an invalid quantity",
      pod({ containers: [requesting({ cpu: "many" })] }),
      {},
      "unknown NodeResourcesFit: the amount of cpu on the node is not known",
    ],
    [
      "is open if a device class could provide the resource",
      pod({ containers: [requesting({ "example.com/gpu": "1" })] }),
      { deviceClasses: undefined },
      "unknown NodeResourcesFit: a device class could provide the resource, and they are not in the view",
    ],
    [
      "is open without the placed pods",
      pod(),
      { pods: undefined },
      "unknown NodeResourcesFit: the pods of the nodes are not in the view",
    ],
  ],
  VolumeRestrictions: [
    [
      "rejects a disk that another pod writes",
      pod({ volumes: [{ name: "v", iscsi: { iqn: "i" } }] }),
      { pods: [placedPod("n", { volumes: [{ name: "v", iscsi: { iqn: "i", readOnly: true } }] })] },
      "VolumeRestrictions: node(s) had no available disk",
    ],
    [
      "shares a disk among readers",
      pod({ volumes: [{ name: "v", iscsi: { iqn: "i", readOnly: true } }] }),
      { pods: [placedPod("n", { volumes: [{ name: "v", iscsi: { iqn: "i", readOnly: true } }] })] },
      "fits",
    ],
    [
      "rejects a claim of one pod alone that is in use",
      pod(claiming("c")),
      {
        ...storage({ accessModes: ["ReadWriteOncePod"], volumeName: "pv" }),
        pods: [placedPod("n", claiming("c"))],
      },
      "VolumeRestrictions: node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
    ],
    [
      "rejects a claim that is missing",
      pod(claiming("c")),
      {},
      'VolumeRestrictions: persistentvolumeclaim "c" not found',
    ],
    [
      "is open without the claims",
      pod(claiming("c")),
      { persistentVolumeClaims: undefined },
      "unknown VolumeRestrictions: the claims are not in the view",
    ],
  ],
  NodeVolumeLimits: [
    [
      "accepts a volume below the limit",
      pod(claiming("c")),
      { ...storage({ volumeName: "pv" }), csiNodes: [csiNode(1)] },
      "fits",
    ],
    [
      "rejects one above it",
      pod(claiming("c")),
      { ...storage({ volumeName: "pv" }), csiNodes: [csiNode(0)] },
      "NodeVolumeLimits: node(s) exceed max volume count",
    ],
    [
      "counts no volume twice",
      pod(claiming("c")),
      { ...storage({ volumeName: "pv" }), csiNodes: [csiNode(1)], pods: [placedPod("n", claiming("c"))] },
      "fits",
    ],
    [
      "counts attachments that no pod uses",
      pod(claiming("c")),
      {
        ...storage({ volumeName: "pv" }, [volume("pv"), volume("other")]),
        csiNodes: [csiNode(1)],
        volumeAttachments: [
          { spec: { nodeName: "n", attacher: "csi", source: { persistentVolumeName: "other" } } },
        ],
      },
      "NodeVolumeLimits: node(s) exceed max volume count",
    ],
    [
      "is open without the attachments",
      pod(claiming("c")),
      { ...storage({ volumeName: "pv" }), csiNodes: [csiNode(1)], volumeAttachments: undefined },
      "unknown NodeVolumeLimits: the volume attachments are not in the view",
    ],
  ],
  VolumeBinding: [
    ["takes a bound volume", pod(claiming("c")), storage({ volumeName: "pv" }), "fits"],
    [
      "rejects a bound volume that the node can't reach",
      pod(claiming("c")),
      storage({ volumeName: "pv" }, [volume("pv", { nodeAffinity: inZone("za") })]),
      "VolumeBinding: node(s) didn't match PersistentVolume's node affinity",
    ],
    [
      "rejects a deleted volume",
      pod(claiming("c")),
      storage({ volumeName: "gone" }),
      'VolumeZone: persistentvolume "gone" not found',
    ],
    [
      "rejects a claim that does not wait for a node",
      pod(claiming("c")),
      storage({ storageClassName: "now" }),
      "VolumeBinding: pod has unbound immediate PersistentVolumeClaims",
    ],
    ["provisions for a claim that waits", pod(claiming("c")), storage({ storageClassName: "wait" }), "fits"],
    [
      "respects the topology of the class",
      pod(claiming("c")),
      storage({ storageClassName: "zoned" }),
      "VolumeBinding: node(s) didn't find available persistent volumes to bind",
    ],
    [
      "finds no volume without provisioning",
      pod(claiming("c")),
      storage({ storageClassName: "local" }),
      "VolumeBinding: node(s) didn't find available persistent volumes to bind",
    ],
    [
      "binds a volume that is available",
      pod(claiming("c")),
      storage({ storageClassName: "local" }, [volume("pv", { storageClassName: "local" })]),
      "fits",
    ],
    [
      "is open if two claims could bind one volume",
      pod({
        volumes: ["c", "d"].map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
      }),
      {
        ...storage({ storageClassName: "local" }, [volume("pv", { storageClassName: "local" })]),
        persistentVolumeClaims: ["c", "d"].map((name) => claim(name, { storageClassName: "local" })),
      },
      "unknown VolumeBinding: several claims of the pod could bind the same volumes",
    ],
    [
      "is open without the classes",
      pod(claiming("c")),
      { ...storage({ storageClassName: "wait" }), storageClasses: undefined },
      "unknown NodeVolumeLimits: the storage classes are not in the view",
    ],
    [
      "waits for the pod's own claim",
      pod({ volumes: [{ name: "v", ephemeral: { volumeClaimTemplate: {} } }] }),
      {},
      'VolumeBinding: waiting for ephemeral volume controller to create the persistentvolumeclaim "new-v"',
    ],
  ],
  VolumeZone: [
    [
      "rejects a volume of another zone",
      pod(claiming("c")),
      {
        ...storage({ volumeName: "pv" }, [volume("pv", {}, { [ZONE]: "za" })]),
        ...labelled({ [ZONE]: "zb" }),
      },
      "VolumeZone: node(s) had no available volume zone",
    ],
    [
      "reaches a volume of several zones from each",
      pod(claiming("c")),
      {
        ...storage({ volumeName: "pv" }, [volume("pv", {}, { [ZONE]: "za__zb" })]),
        ...labelled({ [ZONE]: "zb" }),
      },
      "fits",
    ],
    [
      "allows nodes without zones to reach all",
      pod(claiming("c")),
      storage({ volumeName: "pv" }, [volume("pv", {}, { [ZONE]: "za" })]),
      "fits",
    ],
  ],
  PodTopologySpread: [
    [
      "respects the skew",
      pod(spread(), { labels: { app: "a" } }),
      { ...twoZones(), pods: [placedPod("n", {}, { labels: { app: "a" } })] },
      "PodTopologySpread: node(s) didn't match pod topology spread constraints",
    ],
    [
      "leaves pods that are being deleted out",
      pod(spread(), { labels: { app: "a" } }),
      {
        ...twoZones(),
        pods: [placedPod("n", {}, { labels: { app: "a" }, deletionTimestamp: "2026-01-01T00:00:00Z" })],
      },
      "fits",
    ],
    [
      "needs the label",
      pod(spread()),
      {},
      "PodTopologySpread: node(s) didn't match pod topology spread constraints (missing required label)",
    ],
    [
      "counts from 0 below minDomains",
      pod(spread({ minDomains: 3 }), { labels: { app: "a" } }),
      {
        ...twoZones(),
        pods: ["n", "m"].map((name) => placedPod(name, {}, { labels: { app: "a" } })),
      },
      "PodTopologySpread: node(s) didn't match pod topology spread constraints",
    ],
    [
      "narrows by matchLabelKeys",
      pod(spread({ matchLabelKeys: ["rev"] }), { labels: { app: "a", rev: "2" } }),
      { ...twoZones(), pods: [placedPod("n", {}, { labels: { app: "a", rev: "1" } })] },
      "fits",
    ],
    ["ignores a preference", pod(spread({ whenUnsatisfiable: "ScheduleAnyway" })), {}, "fits"],
  ],
  InterPodAffinity: [
    [
      "respects the pod's anti-affinity",
      pod(podAffinity("podAntiAffinity", { app: "a" })),
      { pods: [placedPod("n", {}, { labels: { app: "a" } })] },
      "InterPodAffinity: node(s) didn't match pod anti-affinity rules",
    ],
    [
      "respects other pods' anti-affinity",
      pod({}, { labels: { app: "a" } }),
      { pods: [placedPod("n", podAffinity("podAntiAffinity", { app: "a" }))] },
      "InterPodAffinity: node(s) didn't satisfy existing pods anti-affinity rules",
    ],
    [
      "respects the pod's affinity",
      pod(podAffinity("podAffinity", { app: "a" })),
      { pods: [placedPod("n", {}, { labels: { app: "a" } })] },
      "fits",
    ],
    [
      "rejects all nodes without matching pods",
      pod(podAffinity("podAffinity", { app: "a" })),
      {},
      "InterPodAffinity: node(s) didn't match pod affinity rules",
    ],
    [
      "allows the first of a group anywhere",
      pod(podAffinity("podAffinity", { app: "a" }), { labels: { app: "a" } }),
      {},
      "fits",
    ],
    [
      "stays within the namespace",
      pod(podAffinity("podAntiAffinity", { app: "a" })),
      { pods: [placedPod("n", {}, { labels: { app: "a" }, namespace: "other" })] },
      "fits",
    ],
    [
      "finds namespaces by their labels",
      pod(
        podAffinity("podAntiAffinity", { app: "a" }, { namespaceSelector: { matchLabels: { team: "x" } } }),
      ),
      {
        namespaces: [{ metadata: { name: "other", labels: { team: "x" } } }],
        pods: [placedPod("n", {}, { labels: { app: "a" }, namespace: "other" })],
      },
      "InterPodAffinity: node(s) didn't match pod anti-affinity rules",
    ],
    ...(["1.33", "1.36"] as const).map(
      (release): Row => [
        `resolves a selector that namespaces without labels match as ${release} does`,
        pod(
          podAffinity(
            "podAntiAffinity",
            { app: "a" },
            { namespaceSelector: { matchExpressions: [{ key: "team", operator: "DoesNotExist" }] } },
          ),
        ),
        {
          release,
          namespaces: [{ metadata: { name: "other", labels: { team: "x" } } }],
          pods: [placedPod("n", {}, { labels: { app: "a" }, namespace: "other" })],
        },
        release === "1.33" ? "fits" : "InterPodAffinity: node(s) didn't match pod anti-affinity rules",
      ],
    ),
    [
      "is open without the namespaces",
      pod(
        podAffinity("podAntiAffinity", { app: "a" }, { namespaceSelector: { matchLabels: { team: "x" } } }),
      ),
      { namespaces: undefined },
      "unknown InterPodAffinity: the namespaces are not in the view",
    ],
    [
      "adds matchLabelKeys to a pod that does not exist yet, as the API server would",
      pod(podAffinity("podAntiAffinity", { app: "a" }, { matchLabelKeys: ["rev"] }), {
        labels: { rev: "2" },
      }),
      { pods: [placedPod("n", {}, { labels: { app: "a", rev: "1" } })] },
      "fits",
    ],
    [
      "adds mismatchLabelKeys",
      pod(podAffinity("podAntiAffinity", { app: "a" }, { mismatchLabelKeys: ["rev"] }), {
        labels: { rev: "2" },
      }),
      { pods: [placedPod("n", {}, { labels: { app: "a", rev: "2" } })] },
      "fits",
    ],
    [
      "adds nothing to a pod that exists, whose selector has them",
      pod(podAffinity("podAntiAffinity", { app: "a" }, { matchLabelKeys: ["rev"] }), {
        uid: "u",
        labels: { rev: "2" },
      }),
      { pods: [placedPod("n", {}, { labels: { app: "a", rev: "1" } })] },
      "InterPodAffinity: node(s) didn't match pod anti-affinity rules",
    ],
  ],
  DynamicResources: [
    [
      "leaves resource claims open",
      pod({ resourceClaims: [{ name: "gpu" }] }),
      {},
      "unknown DynamicResources: the devices that resource claims could get are not known",
    ],
  ],
  NodeDeclaredFeatures: [
    [
      "rejects a node without the feature",
      pod({ hostNetwork: true, hostUsers: false }),
      {},
      "NodeDeclaredFeatures: node(s) didn't match Pod's required features",
    ],
    [
      "accepts a node that declares it",
      pod({ hostNetwork: true, hostUsers: false }),
      { nodes: [node("n", { declaredFeatures: ["UserNamespacesHostNetworkSupport"] })] },
      "fits",
    ],
    ["does not run in 1.35", pod({ hostNetwork: true, hostUsers: false }), { release: "1.35" }, "fits"],
  ],
};

function tainted(value: string, effect = "NoSchedule"): World {
  return { nodes: [node("n", { spec: { taints: [{ key: "dedicated", value, effect }] } })] };
}

function labelled(labels: JsonObject): World {
  return { nodes: [node("n", { labels })] };
}

function affinity(term: Json): JsonObject {
  return { affinity: { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: [term] } } } };
}

function ports(port: JsonObject): JsonObject {
  return { containers: [{ name: "main", ports: [port] }] };
}

function claiming(claimName: string): JsonObject {
  return { volumes: [{ name: "v", persistentVolumeClaim: { claimName } }] };
}

function claim(name: string, spec: JsonObject): JsonObject {
  const bound = spec["volumeName"] === undefined ? {} : { "pv.kubernetes.io/bind-completed": "yes" };
  return {
    metadata: { name, namespace: "default", annotations: bound },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, ...spec },
  };
}

function volume(name: string, spec: JsonObject = {}, labels: JsonObject = {}): JsonObject {
  return {
    metadata: { name, labels },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      csi: { driver: "csi", volumeHandle: name },
      ...spec,
    },
    status: { phase: "Available" },
  };
}

function storage(spec: JsonObject, volumes: readonly JsonObject[] = [volume("pv")]): World {
  const waiting = { volumeBindingMode: "WaitForFirstConsumer" };
  const terms = [{ matchLabelExpressions: [{ key: ZONE, values: ["za"] }] }];
  return {
    persistentVolumeClaims: [claim("c", spec)],
    persistentVolumes: volumes,
    storageClasses: [
      { metadata: { name: "now" }, provisioner: "csi", volumeBindingMode: "Immediate" },
      { metadata: { name: "wait" }, provisioner: "csi", ...waiting },
      { metadata: { name: "zoned" }, provisioner: "csi", allowedTopologies: terms, ...waiting },
      { metadata: { name: "local" }, provisioner: "kubernetes.io/no-provisioner", ...waiting },
    ],
  };
}

function inZone(zone: string): Json {
  return {
    required: { nodeSelectorTerms: [{ matchExpressions: [{ key: ZONE, operator: "In", values: [zone] }] }] },
  };
}

function csiNode(count: number): JsonObject {
  return { metadata: { name: "n" }, spec: { drivers: [{ name: "csi", allocatable: { count } }] } };
}

function twoZones(): World {
  return {
    nodes: [node("n", { labels: { [ZONE]: "za" } }), node("m", { labels: { [ZONE]: "zb" } })],
  };
}

function spread(more: JsonObject = {}): JsonObject {
  return {
    topologySpreadConstraints: [
      {
        topologyKey: ZONE,
        maxSkew: 1,
        whenUnsatisfiable: "DoNotSchedule",
        labelSelector: { matchLabels: { app: "a" } },
        ...more,
      },
    ],
  };
}

function podAffinity(kind: string, matchLabels: JsonObject, more: JsonObject = {}): JsonObject {
  const term = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels }, ...more };
  return { affinity: { [kind]: { [REQUIRED]: [term] } } };
}

describe.each(Object.entries(TABLES))("%s", (_filter, rows) => {
  test.each(rows)("%s", (_says, one, world, verdict) => {
    expect(verdicts(one, { nodes: [node("n")], ...world })["n"]).toBe(verdict);
  });
});

test("every filter of every release has a table", () => {
  const names = RELEASES.flatMap((release) =>
    prepareWorld({ ...EMPTY_WORLD, release }).filters.map(({ name }) => name),
  );
  expect(Object.keys(TABLES).sort()).toEqual([...new Set(names)].sort());
});

describe("input that the API server would refuse", () => {
  const full: JsonObject = pod({
    ...spread(),
    ...ports({ hostPort: 80 }),
    ...claiming("c"),
    affinity: {
      ...(podAffinity("podAffinity", { app: "a" })["affinity"] as JsonObject),
      ...(affinity({ matchExpressions: [{ key: "a", operator: "Exists" }] })["affinity"] as JsonObject),
    },
    tolerations: [{ key: "dedicated", operator: "Exists" }],
    initContainers: [requesting({ cpu: "1" })],
    overhead: { cpu: "1" },
    resources: { requests: { cpu: "1" } },
  });
  const world: SchedulingWorld = {
    ...EMPTY_WORLD,
    nodes: [node("n", { labels: { [ZONE]: "za" }, spec: { taints: [{ key: "a", effect: "NoSchedule" }] } })],
    pods: [placedPod("n", { ...(full["spec"] as JsonObject), nodeName: "n" }, { labels: { app: "a" } })],
    namespaces: [{ metadata: { name: "default", labels: { a: "b" } } }],
    ...storage({ storageClassName: "zoned" }),
    csiNodes: [csiNode(1)],
    csiDrivers: [{ metadata: { name: "csi" }, spec: { storageCapacity: true } }],
    csiStorageCapacities: [{ storageClassName: "zoned", capacity: "1Gi", nodeTopology: {} }],
  };

  test.each(HOSTILE_VALUES.map((value) => [JSON.stringify(value), value]))(
    "gets an answer for every field of the pod that is %s",
    (_text, value) => {
      const prepared = prepareWorld(world);
      for (const changed of replaced(full, value as Json)) {
        const found = feasibleNodes(changed as JsonObject, prepared);
        expect(found.fits + found.unknown + found.fails).toBe(1);
        expect(feasibilityByClass(prepared)(changed as JsonObject)).toEqual(found);
      }
    },
  );

  test.each(HOSTILE_VALUES.map((value) => [JSON.stringify(value), value]))(
    "gets an answer for every field of an object of the world that is %s",
    (_text, value) => {
      for (const [list, objects] of Object.entries(world)) {
        if (!Array.isArray(objects)) continue;
        for (const object of objects) {
          for (const changed of replaced(object as Json, value as Json)) {
            const found = feasibleNodes(full, prepareWorld({ ...world, [list]: [changed as JsonObject] }));
            expect(found.groups).toHaveLength(1);
          }
        }
      }
    },
  );
});
