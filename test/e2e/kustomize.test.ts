// The base builds, and equals the output of usher manifests.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { CERT_MANAGER } from "../../deploy/generate/installation/files.ts";
import { keyOf, registered } from "../../deploy/generate/installation/registered.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { ROOT } from "../cli/usher.ts";
import { ensureTool } from "../cluster/binaries.ts";
import { documents } from "./fixtures/helm.ts";

function sorted(objects: readonly JsonObject[]): JsonObject[] {
  return [...objects].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

describe.skipIf(inject("clusterUnavailable") !== "")("kustomize", () => {
  const built = async (folder: string) =>
    documents(
      execFileSync(await ensureTool("kustomize"), ["build", join(ROOT, "deploy/kustomize", folder)], {
        encoding: "utf8",
        maxBuffer: 64 << 20,
      }),
    );
  const written = async (spec: JsonObject) => {
    const all = await registered(spec, "usher-system");
    const wanted = all.filter(({ kind }) => !String(kind).endsWith("WebhookConfiguration"));
    return JSON.parse(JSON.stringify(wanted)) as JsonObject[];
  };

  test.each<[string, JsonObject]>([
    ["base", {}],
    ["cert-manager", CERT_MANAGER],
  ])(
    "builds %s to the objects of usher manifests",
    async (folder, spec) => {
      expect(sorted(await built(folder))).toEqual(sorted(await written(spec)));
    },
    600_000,
  );

  test("the manifests for kubectl have the same objects, in their order", async () => {
    const wanted = await written({});
    const manifests = documents(readFileSync(join(ROOT, "deploy/manifests/usher.yaml"), "utf8"));
    expect(manifests.map(keyOf)).toEqual(wanted.map(keyOf));
  });
});
