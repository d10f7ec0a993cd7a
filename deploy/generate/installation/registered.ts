import { PassThrough } from "node:stream";
import { installationObjects } from "../../../src/cli/install/installation.ts";
import type { Io } from "../../../src/cli/io.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { declarations as modules } from "../../../src/modules/index.ts";

const silent = new PassThrough();

/** The process of commands: nothing is read or printed here. */
export const IO: Io = { stdin: silent, stdout: silent, stderr: silent, env: {}, name: "usher", modules };

/** Every object of an installation with this configuration, as `usher install` and `usher manifests` have it. */
export async function registered(spec: JsonObject, namespace: string): Promise<readonly JsonObject[]> {
  const configuration = JSON.stringify({
    apiVersion: "usher.dev/v1alpha1",
    kind: "UsherConfiguration",
    spec,
  });
  const installed = { namespace, podLabels: {}, configuration };
  return (await installationObjects({}, IO, { installed })).objects;
}

/** `Deployment usher`: no two objects of an installation have one. */
export function keyOf(object: JsonObject): string {
  const { kind, metadata } = object as { kind: string; metadata: { name: string } };
  return `${kind} ${metadata.name}`;
}
