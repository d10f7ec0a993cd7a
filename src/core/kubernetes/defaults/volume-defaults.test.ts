import { expect, test } from "vitest";
import type { JsonObject } from "../../json.ts";
import { defaultedVolume } from "./volume-defaults.ts";

test.each<[JsonObject, JsonObject]>([
  [{ name: "v" }, { name: "v", emptyDir: {} }],
  [
    { name: "v", emptyDir: null },
    { name: "v", emptyDir: {} },
  ],
  [
    { name: "v", secret: null },
    { name: "v", secret: null, emptyDir: {} },
  ],
  [{ secret: { secretName: "s" } }, { secret: { secretName: "s", defaultMode: 420 } }],
  [{ secret: { defaultMode: 0 } }, { secret: { defaultMode: 0 } }],
  [{ configMap: {} }, { configMap: { defaultMode: 420 } }],
  [
    { downwardAPI: { items: [{ path: "p", fieldRef: { fieldPath: "f" } }] } },
    {
      downwardAPI: {
        defaultMode: 420,
        items: [{ path: "p", fieldRef: { fieldPath: "f", apiVersion: "v1" } }],
      },
    },
  ],
  [
    {
      projected: {
        sources: [{ serviceAccountToken: { path: "t" } }, { downwardAPI: { items: [{ fieldRef: {} }] } }],
      },
    },
    {
      projected: {
        defaultMode: 420,
        sources: [
          { serviceAccountToken: { path: "t", expirationSeconds: 3600 } },
          { downwardAPI: { items: [{ fieldRef: { apiVersion: "v1" } }] } },
        ],
      },
    },
  ],
  [{ hostPath: { path: "/" } }, { hostPath: { path: "/", type: "" } }],
  [{ hostPath: { path: "/", type: "File" } }, { hostPath: { path: "/", type: "File" } }],
  [{ iscsi: {} }, { iscsi: { iscsiInterface: "default" } }],
  [{ rbd: { pool: "p" } }, { rbd: { pool: "p", user: "admin", keyring: "/etc/ceph/keyring" } }],
  [
    { azureDisk: {} },
    { azureDisk: { cachingMode: "ReadWrite", fsType: "ext4", readOnly: false, kind: "Shared" } },
  ],
  [{ scaleIO: {} }, { scaleIO: { storageMode: "ThinProvisioned", fsType: "xfs" } }],
  [{ image: { reference: "a:1" } }, { image: { reference: "a:1", pullPolicy: "IfNotPresent" } }],
  [{ image: { reference: "a" } }, { image: { reference: "a", pullPolicy: "Always" } }],
  [
    { ephemeral: { volumeClaimTemplate: { spec: {} } } },
    { ephemeral: { volumeClaimTemplate: { spec: { volumeMode: "Filesystem" } } } },
  ],
])("%j becomes %j", (volume, expected) => {
  expect(defaultedVolume(volume)).toEqual(expected);
});

test("an unknown source is a source", () => {
  const volume = { name: "v", invented: {} };
  expect(defaultedVolume(volume)).toBe(volume);
});
