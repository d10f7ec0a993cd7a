// Random worlds for the filters: few names and few values, so that pods and nodes match, and every optional field is
// sometimes absent.
import fc from "fast-check";
import type { Json, JsonObject } from "../../src/core/json.ts";
import type { SchedulingWorld } from "../../src/core/scheduling/world.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const HOSTNAME = "kubernetes.io/hostname";
const ZONE = "topology.kubernetes.io/zone";

type Arbitrary<T = Json> = fc.Arbitrary<T>;

const pick = <T extends Json>(...values: readonly T[]): Arbitrary<T> => fc.constantFrom(...values);
const list = <T>(of: Arbitrary<T>, most: number): Arbitrary<T[]> => fc.array(of, { maxLength: most });
/** Members are absent more often than not, as in real objects. */
const sometimes = (
  members: Readonly<Record<string, Arbitrary>>,
  requiredKeys: string[] = [],
): Arbitrary<JsonObject> =>
  fc
    .record(
      Object.fromEntries(
        Object.entries(members).map(([key, of]) => [
          key,
          requiredKeys.includes(key) ? of : fc.option(of, { freq: 2, nil: undefined }),
        ]),
      ),
    )
    .map((object) => {
      const present = Object.entries(object).filter(([, value]) => value !== undefined);
      return Object.fromEntries(present) as JsonObject;
    });
/** Present once in seven. */
const rarely = <T>(of: Arbitrary<T>): Arbitrary<T | undefined> =>
  fc.oneof({ weight: 1, arbitrary: of }, { weight: 6, arbitrary: fc.constant(undefined) });

const NODE_NAMES = ["n0", "n1", "n2", "n3"];
const labelKey = pick("app", "tier");
const labelText = pick("a", "a", "b");
const podLabels = sometimes({ app: labelText, tier: labelText });
const namespace = pick("default", "default", "default", "other");

const labelSelector = fc.oneof(
  fc.constant<Json>({}),
  sometimes({ matchLabels: podLabels }),
  fc
    .record({
      key: labelKey,
      operator: pick("In", "NotIn"),
      values: fc.array(labelText, { minLength: 1, maxLength: 2 }),
    })
    .map((expression): Json => ({ matchExpressions: [expression] })),
  fc
    .record({ key: labelKey, operator: pick("Exists", "DoesNotExist") })
    .map((expression): Json => ({ matchExpressions: [expression] })),
);

const taint = fc.record({
  key: pick("dedicated", "gpu"),
  value: pick("", "edge", "5"),
  effect: pick("NoSchedule", "NoExecute", "PreferNoSchedule"),
});
const toleration = fc.oneof(
  sometimes(
    {
      key: pick("dedicated", "gpu", "node.kubernetes.io/unschedulable"),
      operator: pick("Equal"),
      value: pick("", "edge", "5"),
      effect: pick("NoSchedule", "NoExecute"),
    },
    ["key"],
  ),
  sometimes(
    { key: pick("dedicated", "gpu"), operator: pick("Exists"), effect: pick("NoSchedule", "NoExecute") },
    ["operator"],
  ),
);

const quantity = {
  cpu: pick<Json>("0", "100m", "1", "1500m", "2", 3, "0.0001", "1e3", "4"),
  memory: pick<Json>("0", "64Mi", "1Gi", "1G", "1.5Gi", "1073741825", "128974848", "2Ti"),
  storage: pick<Json>("1Gi", "5Gi", "10G"),
};
const requests = sometimes({
  cpu: quantity.cpu,
  memory: quantity.memory,
  "ephemeral-storage": quantity.storage,
  "example.com/gpu": pick<Json>("0", "1", "2"),
  "hugepages-2Mi": pick<Json>("2Mi", "4Mi"),
});

const nodeLabels = sometimes({
  [ZONE]: pick("za", "zb"),
  "topology.kubernetes.io/region": pick("ra", "rb"),
  "failure-domain.beta.kubernetes.io/zone": pick("za", "zb"),
  disk: pick("ssd", "hdd"),
  size: pick("3", "5", "big", "-1"),
});

/** The features of a world: few at a time, so that the last filters are reached, too. */
const FEATURES = [
  "taints",
  "cordons",
  "nodeAffinity",
  "resources",
  "ports",
  "volumes",
  "spread",
  "podAffinity",
  "declaredFeatures",
  "resize",
  "names",
] as const;
type Feature = (typeof FEATURES)[number];
type Focus = ReadonlySet<Feature>;

const focus: Arbitrary<Focus> = fc
  .oneof(
    { weight: 6, arbitrary: fc.subarray([...FEATURES], { minLength: 1, maxLength: 2 }) },
    { weight: 2, arbitrary: fc.subarray([...FEATURES], { minLength: 3, maxLength: 6 }) },
    { weight: 1, arbitrary: fc.constant([...FEATURES]) },
  )
  .map((features) => new Set(features));

const PLENTY: JsonObject = {
  cpu: "100000",
  memory: "64Ti",
  pods: "110",
  "ephemeral-storage": "1Ti",
  "example.com/gpu": "100",
  "hugepages-2Mi": "1Gi",
};

function nodeOf(name: string, has: Focus): Arbitrary<JsonObject> {
  return fc
    .record({
      labels: nodeLabels,
      hostname: fc.boolean().chain((own) => (own ? fc.constant(name) : pick(name, "n0", ""))),
      spec: sometimes({
        ...(has.has("cordons") ? { unschedulable: fc.boolean() } : {}),
        ...(has.has("taints") ? { taints: list(taint, 2) } : {}),
      }),
      allocatable: !has.has("resources")
        ? fc.constant(PLENTY)
        : sometimes(
            {
              cpu: pick<Json>("0", "1", "2", "4", "3500m"),
              memory: pick<Json>("0", "1Gi", "4Gi", "4294967297"),
              pods: pick<Json>("0", "1", "3", "110"),
              "ephemeral-storage": pick<Json>("1Gi", "10Gi"),
              "example.com/gpu": pick<Json>("0", "1", "4"),
              "hugepages-2Mi": pick<Json>("0", "4Mi"),
            },
            ["cpu", "memory", "pods"],
          ),
      declaredFeatures: list(
        pick(
          "RestartAllContainersOnContainerExits",
          "UserNamespacesHostNetworkSupport",
          "VolumeBindMountOptions",
        ),
        3,
      ).map((features) => [...new Set(features)].sort()),
    })
    .map(({ labels, hostname, spec, allocatable, declaredFeatures }) => ({
      metadata: { name, labels: { ...labels, ...(hostname === "" ? {} : { [HOSTNAME]: hostname }) } },
      spec,
      status: { allocatable, declaredFeatures },
    }));
}

const port = sometimes(
  {
    containerPort: fc.constant(80),
    hostPort: pick<Json>(80, 8080),
    hostIP: pick("0.0.0.0", "127.0.0.1", "10.0.0.1"),
    protocol: pick("TCP", "UDP"),
  },
  ["containerPort"],
);

function containerOf(name: string, init: boolean, has: Focus): Arbitrary<JsonObject> {
  return fc
    .record({
      requests: fc.option(requests, { nil: undefined }),
      ports: has.has("ports") ? list(port, 1) : fc.constant([]),
      restartPolicy: init ? fc.option(fc.constant("Always"), { nil: undefined }) : fc.constant(undefined),
      rules: has.has("declaredFeatures")
        ? rarely(fc.constant<Json>([{ action: "RestartAllContainers" }]))
        : fc.constant(undefined),
      bind: has.has("declaredFeatures")
        ? rarely(fc.constant<Json>([{ name: "v", mountPath: "/v", bindMountOptions: ["noexec"] }]))
        : fc.constant(undefined),
    })
    .map(({ requests: wanted, ports, restartPolicy, rules, bind }) =>
      plain({
        name,
        resources: wanted === undefined ? undefined : { requests: wanted },
        ports: ports.length === 0 ? undefined : ports,
        restartPolicy,
        restartPolicyRules: rules,
        volumeMounts: bind,
      }),
    );
}

function plain(object: Readonly<Record<string, Json | undefined>>): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

const affinityTerm = fc
  .record({
    topologyKey: pick(HOSTNAME, ZONE, "disk"),
    labelSelector: fc.option(labelSelector, { nil: undefined, freq: 6 }),
    namespaces: fc.option(list(namespace, 2), { nil: undefined }),
    namespaceSelector: fc.option(
      pick<Json>(
        {},
        { matchLabels: { team: "x" } },
        { matchExpressions: [{ key: "team", operator: "DoesNotExist" }] },
      ),
      { nil: undefined },
    ),
  })
  .map(plain);

const nodeRequirement = fc.oneof(
  fc.record({
    key: pick(ZONE, "disk", "size"),
    operator: pick("In", "NotIn"),
    values: fc.array(pick("za", "ssd", "5", "big"), { minLength: 1, maxLength: 2 }),
  }),
  fc.record({ key: pick(ZONE, "disk"), operator: pick("Exists", "DoesNotExist") }),
  fc.record({ key: pick("size"), operator: pick("Gt", "Lt"), values: fc.constant(["4"]) }),
);
const nodeTerm = sometimes({
  matchExpressions: list(nodeRequirement, 2),
  matchFields: list(
    fc.record({
      key: fc.constant("metadata.name"),
      operator: pick("In", "NotIn"),
      values: fc.array(pick(...NODE_NAMES), { minLength: 1, maxLength: 1 }),
    }),
    2,
  ),
});

const spreadConstraint = fc
  .record({
    topologyKey: pick(HOSTNAME, ZONE, "disk"),
    maxSkew: pick(1, 2),
    whenUnsatisfiable: fc.oneof(
      { weight: 5, arbitrary: fc.constant("DoNotSchedule") },
      { weight: 1, arbitrary: fc.constant("ScheduleAnyway") },
    ),
    labelSelector: fc.option(labelSelector, { nil: undefined, freq: 6 }),
    minDomains: fc.option(pick(1, 2, 4), { nil: undefined }),
    matchLabelKeys: fc.option(list(pick("tier", "absent"), 2), { nil: undefined }),
    nodeAffinityPolicy: fc.option(pick("Honor", "Ignore"), { nil: undefined }),
    nodeTaintsPolicy: fc.option(pick("Honor", "Ignore"), { nil: undefined }),
  })
  .map(plain);

const volume = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ persistentVolumeClaim: fc.record({ claimName: pick("c0", "c1", "c2") }) }),
  },
  { weight: 1, arbitrary: fc.record({ persistentVolumeClaim: fc.constant({ claimName: "missing" }) }) },
  {
    weight: 2,
    arbitrary: fc.record({ iscsi: sometimes({ iqn: pick("i0", "i1"), readOnly: fc.boolean() }, ["iqn"]) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      rbd: sometimes(
        {
          monitors: fc.array(pick("m0", "m1"), { minLength: 1, maxLength: 2 }),
          image: pick("r0", "r1"),
          pool: pick("p0"),
          readOnly: fc.boolean(),
        },
        ["monitors", "image"],
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      gcePersistentDisk: sometimes({ pdName: pick("d0", "d1"), readOnly: fc.boolean() }, ["pdName"]),
    }),
  },
  { weight: 1, arbitrary: fc.record({ awsElasticBlockStore: fc.record({ volumeID: pick("d0", "d1") }) }) },
  { weight: 1, arbitrary: fc.constant<JsonObject>({ ephemeral: { volumeClaimTemplate: {} } }) },
  { weight: 1, arbitrary: fc.constant<JsonObject>({ emptyDir: {} }) },
);

function podOf(
  name: string,
  has: Focus,
  nodeNames: readonly string[],
  placed: boolean,
): Arbitrary<JsonObject> {
  const one = <T>(arbitrary: Arbitrary<T>, freq = 1): Arbitrary<T | undefined> =>
    fc.oneof({ weight: Math.round(freq * 10), arbitrary }, { weight: 30, arbitrary: fc.constant(undefined) });
  const within = <T>(feature: Feature, arbitrary: Arbitrary<T>, freq = 6): Arbitrary<T | undefined> =>
    has.has(feature) ? one(arbitrary, freq) : fc.constant(undefined);
  const absent = fc.constant(undefined);
  return fc
    .record({
      namespace,
      labels: podLabels,
      deleted: placed ? one(fc.constant("2026-01-01T00:00:00Z")) : absent,
      containers: fc.tuple(
        containerOf("c", false, has),
        fc.option(containerOf("d", false, has), { nil: undefined, freq: 2 }),
      ),
      initContainers: one(
        fc
          .array(fc.nat(), { minLength: 1, maxLength: 2 })
          .chain((items) => fc.tuple(...items.map((_, i) => containerOf(`i${i}`, true, has)))),
        2,
      ),
      nodeName: placed
        ? fc.option(pick(...nodeNames), { freq: 20, nil: undefined })
        : within("names", pick(...NODE_NAMES), 1),
      overhead: within("resources", sometimes({ cpu: fc.constant("50m"), memory: fc.constant("10Mi") }), 1),
      podResources: within("resources", sometimes({ cpu: quantity.cpu, memory: quantity.memory }), 2),
      tolerations: one(list(toleration, 2), 3),
      nodeSelector: within("nodeAffinity", sometimes({ [ZONE]: pick("za"), disk: pick("ssd", "hdd") }), 2),
      nodeAffinity: within("nodeAffinity", fc.array(nodeTerm, { minLength: 1, maxLength: 2 })),
      podAffinity: within("podAffinity", list(affinityTerm, 2), 3),
      podAntiAffinity: within("podAffinity", fc.array(affinityTerm, { minLength: 1, maxLength: 2 })),
      spread: placed
        ? absent
        : within("spread", fc.array(spreadConstraint, { minLength: 1, maxLength: 2 }), 12),
      volumes: within("volumes", fc.array(volume, { minLength: 1, maxLength: 2 }), 12),
      gates: placed ? absent : within("names", fc.constant([{ name: "wait" }, { name: "here" }]), 0.3),
      hostNamespaces: within("declaredFeatures", fc.constant({ hostNetwork: true, hostUsers: false }), 2),
      status: placed && has.has("resize") ? status : fc.constant({}),
      priority: one(pick(0, 10), 1),
    })
    .map((parts) => assemble(name, parts));
}

/** A pod in resize: the allocated and the actual resources of its containers. */
const status: Arbitrary<JsonObject> = fc
  .record({
    phase: fc.oneof(
      { weight: 8, arbitrary: fc.constant("Running") },
      { weight: 1, arbitrary: pick("Succeeded", "Failed") },
    ),
    containers: fc.option(
      fc.tuple(
        ...["c", "i0"].map((name) =>
          sometimes(
            { name: fc.constant(name), allocatedResources: requests, resources: sometimes({ requests }) },
            ["name"],
          ),
        ),
      ),
      { nil: undefined },
    ),
    pending: fc.option(pick("Infeasible", "Deferred"), { nil: undefined }),
    podResources: fc.option(
      sometimes({ requests: sometimes({ cpu: quantity.cpu, memory: quantity.memory }) }),
      { nil: undefined },
    ),
    podAllocated: fc.option(sometimes({ cpu: quantity.cpu, memory: quantity.memory }), { nil: undefined }),
  })
  .map(({ phase, containers, pending, podResources, podAllocated }) =>
    plain({
      phase,
      containerStatuses: containers?.slice(0, 1),
      initContainerStatuses: containers?.slice(1),
      conditions:
        pending === undefined ? undefined : [{ type: "PodResizePending", status: "True", reason: pending }],
      resources: podResources,
      allocatedResources: podAllocated,
    }),
  );

interface PodParts {
  readonly namespace: string;
  readonly labels: JsonObject;
  readonly deleted: string | undefined;
  readonly containers: readonly [JsonObject, JsonObject | undefined];
  readonly initContainers: readonly JsonObject[] | undefined;
  readonly nodeName: string | undefined;
  readonly overhead: JsonObject | undefined;
  readonly podResources: JsonObject | undefined;
  readonly tolerations: readonly JsonObject[] | undefined;
  readonly nodeSelector: JsonObject | undefined;
  readonly nodeAffinity: readonly JsonObject[] | undefined;
  readonly podAffinity: readonly JsonObject[] | undefined;
  readonly podAntiAffinity: readonly JsonObject[] | undefined;
  readonly spread: readonly JsonObject[] | undefined;
  readonly volumes: readonly JsonObject[] | undefined;
  readonly gates: readonly JsonObject[] | undefined;
  readonly hostNamespaces: JsonObject | undefined;
  readonly status: JsonObject;
  readonly priority: number | undefined;
}

function assemble(name: string, parts: PodParts): JsonObject {
  const required = (terms: readonly JsonObject[] | undefined): Json | undefined =>
    terms === undefined ? undefined : { [REQUIRED]: terms };
  const affinity = plain({
    nodeAffinity:
      parts.nodeAffinity === undefined
        ? undefined
        : { [REQUIRED]: { nodeSelectorTerms: parts.nodeAffinity } },
    podAffinity: required(parts.podAffinity),
    podAntiAffinity: required(parts.podAntiAffinity),
  });
  return {
    metadata: plain({
      name,
      uid: `uid-${name}`,
      namespace: parts.namespace,
      labels: parts.labels,
      deletionTimestamp: parts.deleted,
    }),
    spec: plain({
      containers: parts.containers.filter((container) => container !== undefined),
      initContainers: parts.initContainers,
      nodeName: parts.nodeName,
      overhead: parts.overhead,
      resources: parts.podResources === undefined ? undefined : { requests: parts.podResources },
      tolerations: parts.tolerations,
      nodeSelector: parts.nodeSelector,
      affinity: Object.keys(affinity).length === 0 ? undefined : affinity,
      topologySpreadConstraints: parts.spread,
      volumes: parts.volumes?.map((one, i) => ({ name: `v${i}`, ...one })),
      schedulingGates: parts.gates,
      ...parts.hostNamespaces,
      priority: parts.priority,
    }),
    status: parts.status,
  };
}

const accessModes = fc
  .array(pick("ReadWriteOnce", "ReadOnlyMany", "ReadWriteOncePod"), { minLength: 1, maxLength: 2 })
  .map((modes) => [...new Set(modes)]);
const className = pick("wait", "local", "now", "capacity", "absent", "topology");

function claimOf(name: string, forPod: string | undefined): Arbitrary<JsonObject> {
  return fc
    .record({
      namespace,
      accessModes,
      storageClassName: className,
      size: quantity.storage,
      volumeName: fc.option(pick("pv0", "pv1", "pv2", "gone"), { nil: undefined, freq: 2 }),
      completed: fc.oneof(
        { weight: 6, arbitrary: fc.constant(true) },
        { weight: 1, arbitrary: fc.constant(false) },
      ),
      selected: fc.option(pick("n0", "n1"), { nil: undefined, freq: 2 }),
      phase: fc.oneof(
        { weight: 30, arbitrary: fc.constant("Bound") },
        { weight: 1, arbitrary: fc.constant("Lost") },
      ),
      deleted: fc.oneof(
        { weight: 30, arbitrary: fc.constant(undefined) },
        { weight: 1, arbitrary: fc.constant("2026-01-01T00:00:00Z") },
      ),
      owned: fc.boolean(),
    })
    .map(
      ({
        namespace: where,
        accessModes: modes,
        storageClassName,
        size,
        volumeName,
        completed,
        selected,
        phase,
        deleted,
        owned,
      }) => ({
        metadata: plain({
          name,
          uid: `uid-${name}`,
          namespace: where,
          deletionTimestamp: deleted,
          annotations: plain({
            "pv.kubernetes.io/bind-completed": volumeName !== undefined && completed ? "yes" : undefined,
            "volume.kubernetes.io/selected-node": selected,
          }),
          ownerReferences:
            forPod !== undefined && owned
              ? [{ apiVersion: "v1", kind: "Pod", name: forPod, uid: `uid-${forPod}`, controller: true }]
              : undefined,
        }),
        spec: plain({
          accessModes: modes,
          storageClassName,
          volumeName,
          resources: { requests: { storage: size } },
        }),
        status: { phase },
      }),
    );
}

function volumeOf(name: string): Arbitrary<JsonObject> {
  return fc
    .record({
      labels: sometimes({
        [ZONE]: pick("za", "zb", "za__zb", "zc"),
        "failure-domain.beta.kubernetes.io/zone": pick("za"),
        "topology.kubernetes.io/region": pick("ra"),
      }),
      affinity: fc.option(
        fc.array(sometimes({ matchExpressions: list(nodeRequirement, 2) }), { minLength: 1, maxLength: 2 }),
        // Zones are compared where the affinity of a volume has not rejected the node.
        { nil: undefined, freq: 2 },
      ),
      storageClassName: className,
      capacity: quantity.storage,
      accessModes,
      phase: pick("Available", "Bound", "Available"),
      claim: fc.option(pick("c0", "c1"), { nil: undefined, freq: 2 }),
      driver: fc.option(pick("csi.example.com", "limited.example.com"), { nil: undefined }),
    })
    .map(({ labels, affinity, storageClassName, capacity, accessModes: modes, phase, claim, driver }) => ({
      metadata: { name, labels },
      spec: plain({
        storageClassName,
        accessModes: modes,
        capacity: { storage: capacity },
        nodeAffinity: affinity === undefined ? undefined : { required: { nodeSelectorTerms: affinity } },
        claimRef: claim === undefined ? undefined : { name: claim, namespace: "default" },
        csi: driver === undefined ? undefined : { driver, volumeHandle: `handle-${name}` },
        hostPath: driver === undefined ? { path: "/data" } : undefined,
      }),
      status: { phase },
    }));
}

const STORAGE_CLASSES: readonly JsonObject[] = [
  { metadata: { name: "wait" }, provisioner: "csi.example.com", volumeBindingMode: "WaitForFirstConsumer" },
  {
    metadata: { name: "local" },
    provisioner: "kubernetes.io/no-provisioner",
    volumeBindingMode: "WaitForFirstConsumer",
  },
  { metadata: { name: "now" }, provisioner: "csi.example.com", volumeBindingMode: "Immediate" },
  {
    metadata: { name: "capacity" },
    provisioner: "limited.example.com",
    volumeBindingMode: "WaitForFirstConsumer",
  },
  {
    metadata: { name: "topology" },
    provisioner: "csi.example.com",
    volumeBindingMode: "WaitForFirstConsumer",
    allowedTopologies: [{ matchLabelExpressions: [{ key: ZONE, values: ["za"] }] }],
  },
];

const csiDrivers: Arbitrary<JsonObject[]> = fc
  .tuple(fc.boolean(), fc.boolean())
  .map(([storageCapacity, preventPodSchedulingIfMissing]) => [
    { metadata: { name: "limited.example.com" }, spec: { storageCapacity, preventPodSchedulingIfMissing } },
  ]);

function csiNodeOf(name: string): Arbitrary<JsonObject | undefined> {
  return fc.option(
    list(
      sometimes(
        {
          name: pick("csi.example.com", "limited.example.com"),
          nodeID: fc.constant(name),
          allocatable: sometimes({ count: pick(0, 1, 2) }),
        },
        ["name", "nodeID"],
      ),
      2,
    ).map((drivers) => {
      const unique = new Map(drivers.map((driver) => [driver["name"], driver]));
      return { metadata: { name }, spec: { drivers: [...unique.values()] } };
    }),
    { nil: undefined },
  );
}

const capacity: Arbitrary<JsonObject> = fc
  .record({
    storageClassName: pick("capacity", "wait"),
    capacity: fc.option(quantity.storage, { nil: undefined }),
    maximumVolumeSize: fc.option(quantity.storage, { nil: undefined, freq: 2 }),
    nodeTopology: fc.option(pick<Json>({}, { matchLabels: { [ZONE]: "za" } }), { nil: undefined, freq: 6 }),
  })
  .map(plain);

export interface Case {
  readonly world: SchedulingWorld;
  readonly candidates: readonly JsonObject[];
}

/** Some nodes, pods on them, volumes, and pods to schedule. The API server would admit all of it. */
export const cases: Arbitrary<Case> = fc
  .tuple(fc.integer({ min: 1, max: NODE_NAMES.length }), focus)
  .chain(([count, has]) => {
    const names = NODE_NAMES.slice(0, count);
    return fc.record({
      nodes: fc.tuple(...names.map((name) => nodeOf(name, has))),
      pods: list(fc.nat(), has.has("spread") || has.has("podAffinity") ? 8 : 4).chain((items) =>
        fc.tuple(...items.map((_, i) => podOf(`p${i}`, has, [...names, "nowhere"], true))),
      ),
      namespaces: fc.constantFrom<JsonObject[]>(
        [{ metadata: { name: "default", labels: { team: "x" } } }, { metadata: { name: "other" } }],
        [{ metadata: { name: "other", labels: { team: "x" } } }],
      ),
      persistentVolumes: fc.tuple(...["pv0", "pv1", "pv2"].map(volumeOf)),
      persistentVolumeClaims: fc.tuple(
        claimOf("c0", undefined),
        claimOf("c1", undefined),
        claimOf("c2", undefined),
        claimOf("new-v0", "new"),
        claimOf("p0-v0", "p0"),
      ),
      csiNodes: fc.tuple(...names.map(csiNodeOf)).map((all) => all.filter((one) => one !== undefined)),
      csiDrivers,
      csiStorageCapacities: list(capacity, 2).map((all) =>
        all.map((one, i) => ({ metadata: { name: `k${i}`, namespace: "default" }, ...one })),
      ),
      candidate: podOf("new", has, names, false),
    });
  })
  .map(({ candidate, ...world }) => ({
    world: { ...world, storageClasses: STORAGE_CLASSES, volumeAttachments: [], deviceClasses: [] },
    candidates: [candidate],
  }));
