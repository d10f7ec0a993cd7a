import fc from "fast-check";
import { expect, test } from "vitest";
import type { Json } from "../json.ts";
import { parseServerVersion } from "./versions.ts";

test.each<[string, Json, effective: string, binary: string]>([
  ["kubeadm", { major: "1", minor: "37", gitVersion: "v1.37.2" }, "1.37.2", "1.37.2"],
  ["GKE", { major: "1", minor: "30+", gitVersion: "v1.30.5-gke.1355000" }, "1.30.5", "1.30.5"],
  ["no gitVersion", { major: "1", minor: "30+" }, "1.30.0", "1.30.0"],
  [
    "emulating an older one",
    { major: "1", minor: "37", gitVersion: "v1.37.0", emulationMajor: "1", emulationMinor: "35" },
    "1.35.0",
    "1.37.0",
  ],
  [
    "emulating itself",
    { major: "1", minor: "37", gitVersion: "v1.37.4", emulationMajor: "1", emulationMinor: "37" },
    "1.37.4",
    "1.37.4",
  ],
  [
    "an emulation that can't be read",
    { gitVersion: "v1.37.4", emulationMajor: 1, emulationMinor: "" },
    "1.37.4",
    "1.37.4",
  ],
])("%s", (_, body, effective, binary) => {
  const version = parseServerVersion(body);
  const text = (of: "effective" | "binary") =>
    version && `${version[of].major}.${version[of].minor}.${version[of].patch}`;
  expect([text("effective"), text("binary")]).toEqual([effective, binary]);
});

test.each<[string, Json | undefined]>([
  ["nothing", undefined],
  ["no object", "v1.37.0"],
  ["no version", { gitVersion: "main", major: "", minor: "" }],
  ["a Status", { kind: "Status", code: 403 }],
])("%s is not a version", (_, body) => {
  expect(parseServerVersion(body)).toBeUndefined();
});

test("any answer is read without an exception", () => {
  fc.assert(fc.property(fc.jsonValue(), (body) => void parseServerVersion(body as Json)));
});
