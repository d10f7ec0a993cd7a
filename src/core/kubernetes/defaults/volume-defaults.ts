import { type JsonObject, stringAt } from "../../json.ts";
import { defaultedFieldRef } from "./container-defaults.ts";
import { changeItems, changeMember, fillAbsent, fillZero } from "./fill.ts";
import { defaultPullPolicy } from "./image.ts";

/** 0644, which JSON has no octal for. */
const FILE_MODE = 0o644;
/** A projected token lives an hour. */
const TOKEN_SECONDS = 3600;

/** The API server's defaults of a volume; one without a source becomes an emptyDir. */
export function defaultedVolume(volume: JsonObject): JsonObject {
  // Any other member may be a source of a newer version: then it is a source, and is left unchanged.
  const hasSource = Object.keys(volume).some(
    (key) => key !== "name" && volume[key] !== undefined && volume[key] !== null,
  );
  if (!hasSource) return { ...volume, emptyDir: {} };
  let filled = volume;
  for (const [source, change] of SOURCES) filled = changeMember(filled, source, change);
  return filled;
}

const SOURCES: ReadonlyMap<string, (source: JsonObject) => JsonObject> = new Map([
  ["secret", withMode],
  ["configMap", withMode],
  ["downwardAPI", (source) => changeItems(withMode(source), "items", defaultedFieldRef)],
  ["projected", (source) => changeItems(withMode(source), "sources", defaultedProjection)],
  ["hostPath", (source) => fillAbsent(source, { type: "" })],
  ["iscsi", (source) => fillZero(source, { iscsiInterface: "default" })],
  ["rbd", (source) => fillZero(source, { pool: "rbd", user: "admin", keyring: "/etc/ceph/keyring" })],
  ["azureDisk", defaultedAzureDisk],
  ["scaleIO", (source) => fillZero(source, { storageMode: "ThinProvisioned", fsType: "xfs" })],
  ["image", defaultedImage],
  ["ephemeral", defaultedEphemeral],
]);

function withMode(source: JsonObject): JsonObject {
  return fillAbsent(source, { defaultMode: FILE_MODE });
}

function defaultedProjection(projection: JsonObject): JsonObject {
  const filled = changeMember(projection, "downwardAPI", (source) =>
    changeItems(source, "items", defaultedFieldRef),
  );
  return changeMember(filled, "serviceAccountToken", (token) =>
    fillAbsent(token, { expirationSeconds: TOKEN_SECONDS }),
  );
}

function defaultedAzureDisk(source: JsonObject): JsonObject {
  return fillAbsent(source, { cachingMode: "ReadWrite", fsType: "ext4", readOnly: false, kind: "Shared" });
}

function defaultedImage(source: JsonObject): JsonObject {
  return fillZero(source, { pullPolicy: defaultPullPolicy(stringAt(source, "reference") ?? "") });
}

function defaultedEphemeral(source: JsonObject): JsonObject {
  return changeMember(source, "volumeClaimTemplate", (template) =>
    changeMember(template, "spec", (spec) => fillAbsent(spec, { volumeMode: "Filesystem" })),
  );
}
