// The base builds, and is what usher manifests prints.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { keyOf, registered } from "../../deploy/generate/installation/registered.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { ROOT } from "../cli/usher.ts";
import { ensureTool } from "../cluster/binaries.ts";
import { documents } from "./fixtures/helm.ts";

function sorted(objects: readonly JsonObject[]): JsonObject[] {
  return [...objects].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

describe.skipIf(inject("clusterUnavailable") !== "")("kustomize", () => {
  test("builds the base to the objects of usher manifests", async () => {
    const built = execFileSync(
      await ensureTool("kustomize"),
      ["build", join(ROOT, "deploy/kustomize/base")],
      {
        encoding: "utf8",
        maxBuffer: 64 << 20,
      },
    );
    const all = await registered({}, "usher-system");
    const wanted = all.filter(({ kind }) => !String(kind).endsWith("WebhookConfiguration"));
    expect(sorted(documents(built))).toEqual(sorted(JSON.parse(JSON.stringify(wanted)) as JsonObject[]));
    const manifests = documents(readFileSync(join(ROOT, "deploy/manifests/usher.yaml"), "utf8"));
    expect(manifests.map(keyOf)).toEqual(wanted.map(keyOf));
  }, 600_000);
});
