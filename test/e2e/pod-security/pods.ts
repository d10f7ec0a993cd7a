// The fixtures of Pod Security as pods that can be sent to the API server.
import { copyOf, type Json, type JsonObject, own, setOwn } from "../../../src/core/json.ts";
import { CHECKS } from "../../../src/modules/pod-os/security/checks.ts";
import { fixturesOf, type PodFixture } from "../../builders/pod-security-fixtures.ts";

/** A pod cannot be created with ephemeral containers. */
const CREATED = ["initContainers", "containers"] as const;

const APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/";

/** Volume sources with all fields that the API server requires. */
const SOURCES: JsonObject = {
  hostPath: { path: "/", type: "" },
  gcePersistentDisk: { pdName: "d" },
  awsElasticBlockStore: { volumeID: "d" },
  gitRepo: { repository: "https://git.example/r" },
  nfs: { server: "s", path: "/" },
  iscsi: {
    targetPortal: "1.2.3.4:3260",
    iqn: "iqn.2001-04.com.example:storage",
    lun: 0,
    iscsiInterface: "default",
  },
  glusterfs: { endpoints: "e", path: "p" },
  rbd: { monitors: ["m"], image: "i", pool: "rbd", user: "admin", keyring: "/etc/ceph/keyring" },
  flexVolume: { driver: "example.com/d" },
  cinder: { volumeID: "d" },
  cephfs: { monitors: ["m"] },
  flocker: { datasetName: "d" },
  fc: { targetWWNs: ["w"], lun: 0 },
  azureFile: { secretName: "s", shareName: "n" },
  vsphereVolume: { volumePath: "p" },
  quobyte: { registry: "r:1", volume: "v" },
  azureDisk: { diskName: "d", diskURI: "https://a.blob.core.windows.net/c/d.vhd" },
  photonPersistentDisk: { pdID: "d" },
  portworxVolume: { volumeID: "d" },
  scaleIO: {
    gateway: "g",
    system: "s",
    volumeName: "v",
    secretRef: { name: "s" },
    storageMode: "ThinProvisioned",
    fsType: "xfs",
  },
  storageos: { volumeName: "v" },
  configMap: { name: "c" },
  csi: { driver: "d.example" },
  downwardAPI: { items: [] },
  ephemeral: {
    volumeClaimTemplate: {
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
    },
  },
  image: { reference: "registry.example/i" },
  persistentVolumeClaim: { claimName: "c" },
  projected: { sources: [] },
  secret: { secretName: "s" },
};

export interface AskedPod {
  readonly name: string;
  readonly check: string;
  readonly level: "baseline" | "restricted";
  readonly metadata: JsonObject;
  readonly spec: JsonObject;
  /** As the API server evaluates it: with its defaults. */
  readonly judged: JsonObject;
}

type Mutable = Record<string, Json | undefined>;

/** All containers of a HostProcess pod are HostProcess containers, in the host's network. */
function makeHostProcess(spec: Mutable): void {
  spec["hostNetwork"] = true;
  for (const list of CREATED)
    for (const container of spec[list] as Mutable[])
      container["securityContext"] = { windowsOptions: { hostProcess: true } };
}

function asked({ name, check, metadata, spec, system, declared }: PodFixture): AskedPod {
  const sent = copyOf(spec) as Mutable;
  for (const volume of (sent["volumes"] ?? []) as Mutable[])
    for (const type of Object.keys(volume)) {
      const source = own(SOURCES, type);
      if (source !== undefined) volume[type] = source;
    }
  if (check.id === "windowsHostProcess" && declared === "forbidden") makeHostProcess(sent);
  const judged = copyOf(sent) as Mutable;
  // An unknown source is dropped, and a volume without a source becomes an emptyDir.
  for (const volume of (judged["volumes"] ?? []) as Mutable[]) if ("later" in volume) volume["emptyDir"] = {};
  const annotations = (metadata["annotations"] ?? {}) as JsonObject;
  for (const list of CREATED)
    for (const container of judged[list] as Mutable[]) {
      const profile = annotations[`${APP_ARMOR}${String(container["name"])}`];
      // Copied from the annotation to the field, except for Windows.
      if (profile !== "unconfined" || system === "windows") continue;
      const context = (container["securityContext"] ?? {}) as Mutable;
      setOwn(context, "appArmorProfile", { type: "Unconfined" });
      container["securityContext"] = context;
    }
  return { name, check: check.id, level: check.level, metadata, spec: sent, judged };
}

/** Without an OS all values, those of init containers if forbidden; with an OS the first forbidden one. */
export function podsAt(minor: number): AskedPod[] {
  return CHECKS.flatMap((check) => fixturesOf(check, minor, CREATED))
    .filter(({ system, list, declared, name }) => {
      if (declared === "allowed") return system === "none" && list !== "initContainers";
      return system === "none" || (list !== "initContainers" && name.endsWith(" 0"));
    })
    .map(asked);
}

const context = (securityContext: JsonObject) => ({ securityContext });

/** Several violations, several containers, and strings that need quoting. */
export const MIXED: readonly AskedPod[] = [
  {
    metadata: { name: "p" },
    spec: {
      hostPID: true,
      hostIPC: true,
      hostNetwork: true,
      securityContext: {
        seLinuxOptions: { type: "z", user: "u" },
        sysctls: [
          { name: "kernel.msgmax", value: "1" },
          { name: "kernel.shmmax", value: "1" },
        ],
        runAsUser: 0,
        seccompProfile: { type: "Unconfined" },
      },
      initContainers: [
        { name: "i", image: "i", ...context({ privileged: true, capabilities: { add: ["Z", "NET_RAW"] } }) },
      ],
      containers: [
        {
          name: "b",
          image: "i",
          ports: [
            { containerPort: 9, hostPort: 9 },
            { containerPort: 10, hostPort: 10 },
          ],
          livenessProbe: { httpGet: { port: 1, host: 'q"\\' } },
          ...context({ runAsNonRoot: false, seLinuxOptions: { type: "a", role: "r" } }),
        },
        {
          name: "a",
          image: "i",
          ports: [{ containerPort: 8, hostPort: 8 }],
          lifecycle: {
            preStop: { tcpSocket: { port: 1, host: "\u{1f600}" } },
            postStart: { httpGet: { port: 1, host: "\uffee" } },
          },
          ...context({ runAsUser: 0, capabilities: { add: ["\u{1f600}", "\uffee", "B"], drop: ["all"] } }),
        },
      ],
      volumes: [
        { name: "v", hostPath: { path: "/", type: "" } },
        { name: "n", nfs: { server: "s", path: "/" } },
        { name: "e" },
      ],
    },
  },
  {
    metadata: {
      name: "p",
      annotations: {
        "seccomp.security.alpha.kubernetes.io/pod":
          'a"b\\\u0001\u007f\u0085\u00a0\u200b\ue000\u{10ffff}\u{1f600}é\t\n',
        "container.seccomp.security.alpha.kubernetes.io/c": "",
        "container.seccomp.security.alpha.kubernetes.io/other": "unconfined",
      },
    },
    spec: { containers: [{ name: "c", image: "i" }] },
  },
].map((pod, i) => {
  const judged = copyOf(pod.spec) as Mutable;
  // A volume without a source becomes an emptyDir.
  for (const volume of (judged["volumes"] ?? []) as Mutable[])
    if (Object.keys(volume).length === 1) volume["emptyDir"] = {};
  return { name: `mixed ${i}`, check: "mixed", level: "baseline", ...pod, judged } as AskedPod;
});
