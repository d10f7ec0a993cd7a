import type { JsonObject } from "../../../../core/json.ts";
import { joinQuote, plural, sortedSet } from "../../go-text.ts";
import type { Check, Failure } from "../check.ts";
import { type CheckedPod, isSet } from "../checked-pod.ts";
import { causesAt, namesOf } from "../containers.ts";

const ALLOWED = [
  "configMap",
  "csi",
  "downwardAPI",
  "emptyDir",
  "ephemeral",
  "image",
  "persistentVolumeClaim",
  "projected",
  "secret",
];

/** In upstream's order of volume types. */
const RESTRICTED = [
  "hostPath",
  "gcePersistentDisk",
  "awsElasticBlockStore",
  "gitRepo",
  "nfs",
  "iscsi",
  "glusterfs",
  "rbd",
  "flexVolume",
  "cinder",
  "cephfs",
  "flocker",
  "fc",
  "azureFile",
  "vsphereVolume",
  "quobyte",
  "azureDisk",
  "photonPersistentDisk",
  "portworxVolume",
  "scaleIO",
  "storageos",
];

/**
 * Volumes are limited to types that reach nothing of the host.
 *
 * Fields:  spec.volumes[*]
 * Allowed: configMap, csi, downwardAPI, emptyDir, ephemeral, image, persistentVolumeClaim, projected, secret
 * Fix:     none: only the author knows which volume serves instead.
 *
 * The API server makes a volume without a source an emptyDir before this check.
 */
export const restrictedVolumes: Check = {
  id: "restrictedVolumes",
  level: "restricted",
  overrides: ["hostPathVolumes"],
  os: "any",
  variants: [
    {
      since: 0,
      fields: [
        {
          scope: "volume",
          path: [],
          allowed: ALLOWED.map((type) => ({ [type]: {} })),
          forbidden: [...RESTRICTED, "later"].map((type) => ({ [type]: {} })),
        },
      ],
      cel: {
        pod: `object.spec.?volumes.orValue([]).all(v, ${ALLOWED.map((type) => `has(v.${type})`).join(" || ")})`,
      },
      evaluate: evaluateVolumeTypes,
    },
  ],
};

function isAllowed(volume: JsonObject): boolean {
  for (let i = 0; i < ALLOWED.length; i++) if (isSet(volume[ALLOWED[i] ?? ""])) return true;
  return false;
}

function evaluateVolumeTypes({ volumes }: CheckedPod, mostCauses: number): Failure | undefined {
  let found: number[] | undefined;
  for (let i = 0; i < volumes.length; i++) {
    const volume = volumes[i];
    if (volume === undefined || isAllowed(volume)) continue;
    if (found === undefined) found = [i];
    else found.push(i);
  }
  if (found === undefined) return undefined;
  const types = sortedSet(
    found.values().map((i) => RESTRICTED.find((type) => isSet(volumes[i]?.[type])) ?? "unknown"),
  );
  return {
    reason: "restricted volume types",
    detail: `${plural("volume", "volumes", found.length)} ${joinQuote(namesOf(volumes, found))} ${plural("uses", "use", found.length)} ${plural("restricted volume type", "restricted volume types", types.length)} ${joinQuote(types)}`,
    causes: causesAt(
      found.slice(0, mostCauses).map((i) => ["spec", "volumes", i]),
      `must be one of ${ALLOWED.join(", ")}`,
    ),
  };
}
