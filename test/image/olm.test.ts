import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import type { GeneratedFile } from "../../deploy/generate/generated-files.ts";
import { bundleOf, refuseTags } from "../../deploy/generate/olm/bundle.ts";
import { byDigest } from "../../deploy/generate/olm/digest.ts";
import { olmFiles } from "../../deploy/generate/olm/files.ts";
import { Gates } from "../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import { at, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { grantedRights, ruleOf } from "../../src/core/module/rights.ts";
import { allModules } from "../../src/modules/all.ts";
import { ensureTool } from "../cluster/binaries.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const digest = (name: string, digit: string) => `registry.example.com/${name}@sha256:${digit.repeat(64)}`;
const FIRST = {
  version: "0.1.0",
  image: digest("usher", "1"),
  bundleImage: digest("bundle", "2"),
};
/** The validators are built on first use. */
const BUILD_MS = 60 * 60_000;
const CSV = "bundle/manifests/project-request-limit-operator.clusterserviceversion.yaml";
const CATALOG = "catalog/project-request-limit-operator/catalog.yaml";

function textOf(files: readonly GeneratedFile[], path: string): string {
  const found = files.find((one) => one.path === path);
  if (found === undefined) throw new Error(`no ${path}`);
  return found.text;
}

/** A release after the first, in the catalog of the first. */
function second(): GeneratedFile[] {
  const earlier = parseAllDocuments(textOf(olmFiles(FIRST), CATALOG)).map((one) => one.toJS() as JsonObject);
  const next = { version: "0.2.0", image: digest("usher", "3"), bundleImage: digest("bundle", "4") };
  return olmFiles({ ...next, replaces: "0.1.0", earlier });
}

describe("OLM's own validators", () => {
  let olm: string;
  const folder = mkdtempSync(join(tmpdir(), "olm-"));
  beforeAll(async () => {
    olm = await ensureTool("olm");
  }, BUILD_MS);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** The output of a command about files, one of which is changed. */
  function judged(
    command: "bundle" | "validate",
    files: readonly GeneratedFile[],
    change = (text: string) => text,
  ) {
    const place = mkdtempSync(join(folder, "files-"));
    const path = command === "bundle" ? CSV : CATALOG;
    for (const file of files) {
      mkdirSync(dirname(join(place, file.path)), { recursive: true });
      writeFileSync(join(place, file.path), file.path === path ? change(file.text) : file.text);
    }
    return judgedIn(command, place);
  }

  function judgedIn(command: "bundle" | "validate", place: string) {
    const part = command === "bundle" ? "bundle" : "catalog";
    const { status, stdout, stderr } = spawnSync(olm, [command, join(place, part)], { encoding: "utf8" });
    return { status, lines: `${stdout}${stderr}`.trim().split("\n").filter(Boolean) };
  }

  test("accept the bundle, and warn only about known false positives", () => {
    for (const files of [olmFiles(FIRST), second()]) {
      const { status, lines } = judged("bundle", files);
      expect(status, lines.join("\n")).toBe(0);
      // Rules of roles name no version, and both groups once had a version that was removed. The warnings are
      // unordered.
      for (const line of lines)
        expect(line).toMatch(/deprecated .* (?:endpointslices: .*,events: |events: .*,endpointslices: )/);
    }
  });

  test.each<[string, (text: string) => string]>([
    ["without a name", (text) => text.replace("name: project-request-limit-operator.v0.1.0", 'name: ""')],
    ["with an invalid version", (text) => text.replace("version: 0.1.0", "version: one")],
    [
      "without its CRD",
      (text) => text.replace("projectrequestlimits.operator.project.openshift.io", "others.example.com"),
    ],
    [
      "with an invalid minimum version",
      (text) => text.replace("minKubeVersion: 1.33.0", "minKubeVersion: soon"),
    ],
    ["with an unknown capability", (text) => text.replace("Seamless Upgrades", "Everything")],
  ])("refuse a bundle %s", (_what, change) => {
    const { status, lines } = judged("bundle", olmFiles(FIRST), change);
    expect(lines.some((line) => line.startsWith("Error"))).toBe(true);
    expect(status).toBe(1);
  });

  test("accept the catalog of the first release, and of the next one", () => {
    for (const files of [olmFiles(FIRST), second()]) {
      const { status, lines } = judged("validate", files);
      expect(status, lines.join("\n")).toBe(0);
    }
  });

  test("accept the output of the release workflow, for the first release and for the next one", () => {
    const place = mkdtempSync(join(folder, "workflow-"));
    const { jobs } = parse(readFileSync(join(ROOT, ".github/workflows/release.yml"), "utf8"));
    const steps: { name?: string; run?: string }[] = jobs.publish.steps;
    const script = steps.find(({ name }) => name?.includes("OLM's bundle"))?.run ?? "";
    // Stand-ins for commands that need a registry or the forge; npm runs the real command.
    const programs = {
      npm: `shift 3; exec ${process.execPath} ${ROOT}/deploy/generate/main.ts "$@"`,
      gh: `if [ "$2" = list ]; then echo "$LAST"; else cp catalog.yaml last.yaml; fi`,
      buildah: `if [ "$1" = push ]; then test -f olm/bundle/Dockerfile && echo "$BUNDLE" > bundle.digest; fi`,
      cosign: "true",
    };
    mkdirSync(join(place, "bin"));
    for (const [name, text] of Object.entries(programs))
      writeFileSync(join(place, "bin", name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    const PATH = `${join(place, "bin")}:${process.env["PATH"]}`;
    for (const [version, last, digit] of [
      ["0.1.0", "", "1"],
      ["0.2.0", "v0.1.0", "2"],
    ] as const) {
      const [DIGEST, BUNDLE] = [`sha256:${digit.repeat(64)}`, `sha256:${digit.repeat(63)}0`];
      const env = {
        ...process.env,
        PATH,
        IMAGE: "registry.example.com/usher",
        VERSION: version,
        DIGEST,
        BUNDLE,
        LAST: last,
      };
      // As GitHub runs it.
      const ran = spawnSync("bash", ["-eo", "pipefail", "-c", script], { cwd: place, env, encoding: "utf8" });
      expect(ran.status, ran.stderr).toBe(0);
      for (const command of ["bundle", "validate"] as const)
        expect(judgedIn(command, join(place, "olm"))).toMatchObject({ status: 0 });
      const written = readFileSync(join(place, "olm", CSV), "utf8");
      expect(written).toContain(`containerImage: registry.example.com/usher@${DIGEST}`);
      const catalog = readFileSync(join(place, "catalog.yaml"), "utf8");
      expect(catalog).toContain(`image: registry.example.com/usher-bundle@${BUNDLE}`);
      expect(catalog.includes("replaces: project-request-limit-operator.v0.1.0")).toBe(last !== "");
    }
  });

  test.each<[string, (text: string) => string]>([
    [
      "a channel without its bundle",
      (text) => text.replace(/^name: project-request-limit-operator.v0.2.0$/m, "name: other.v0.2.0"),
    ],
    ["two heads of a channel", (text) => text.replace(/^ +replaces: .*\n/m, "")],
    ["an unknown default channel", (text) => text.replace("defaultChannel: stable", "defaultChannel: fast")],
  ])("refuse a catalog with %s", (_what, change) => {
    expect(judged("validate", second(), change).status).toBe(1);
  });
});

describe("the bundle", () => {
  const { csv, crds, ownProperties, relatedImages } = bundleOf(FIRST);
  const module = allModules.find(({ operator }) => operator !== undefined);

  test("has exactly the operator's permissions", () => {
    const declared = { installation: DEFAULT_INSTALLATION, gates: new Gates([]) };
    for (const [permissions, kind] of [
      ["clusterPermissions", "ClusterRole"],
      ["permissions", "Role"],
    ] as const) {
      const [granted, ...others] = listAt(csv, "spec", "install", "spec", permissions);
      expect(others).toEqual([]);
      expect(at(granted, "serviceAccountName")).toBe(module?.operator?.name);
      const rights = (module?.operator?.roles ?? [])
        .filter((role) => role.kind === kind)
        .flatMap((role) => role.rights);
      expect(at(granted, "rules")).toEqual(grantedRights(rights, declared).map(ruleOf));
    }
  });

  test("supports all namespaces, suggests the operator's own, and declares the tested range of releases", () => {
    const modes = listAt(csv, "spec", "installModes").filter((one) => at(one, "supported") === true);
    expect(modes.map((one) => stringAt(one, "type"))).toEqual(["AllNamespaces"]);
    expect(at(csv, "metadata", "annotations", "operatorframework.io/suggested-namespace")).toBe(
      "openshift-project-request-limit-operator",
    );
    const template = stringAt(
      csv,
      "metadata",
      "annotations",
      "operatorframework.io/suggested-namespace-template",
    );
    expect(JSON.parse(template ?? "")).toEqual({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: {
        name: "openshift-project-request-limit-operator",
        annotations: { "openshift.io/node-selector": "" },
      },
    });
    expect(at(csv, "spec", "minKubeVersion")).toBe("1.33.0");
    expect(listAt(ownProperties, "properties")).toEqual([{ type: "olm.maxOpenShiftVersion", value: "4.24" }]);
    expect(crds).toHaveLength(2);
  });

  test("names no user: OpenShift assigns one, and refuses another", () => {
    const [deployment] = listAt(csv, "spec", "install", "spec", "deployments");
    expect(at(deployment, "spec", "template", "spec", "securityContext")).toEqual({
      runAsNonRoot: true,
      seccompProfile: { type: "RuntimeDefault" },
    });
    expect(JSON.stringify(csv)).not.toContain("runAsUser");
  });

  test("has an upgrade path from every release to this one", () => {
    const catalog = parseAllDocuments(textOf(second(), CATALOG)).map((one) => one.toJS() as JsonObject);
    expect(catalog.find(({ schema }) => schema === "olm.package")).toMatchObject({
      defaultChannel: "stable",
    });
    expect(
      at(
        catalog.find(({ schema }) => schema === "olm.channel"),
        "entries",
      ),
    ).toEqual([
      { name: "project-request-limit-operator.v0.1.0", skipRange: "<0.1.0" },
      {
        name: "project-request-limit-operator.v0.2.0",
        replaces: "project-request-limit-operator.v0.1.0",
        skipRange: "<0.2.0",
      },
    ]);
    const next = parse(textOf(second(), CSV)) as JsonObject;
    expect(at(next, "spec", "replaces")).toBe("project-request-limit-operator.v0.1.0");
    expect(() => olmFiles({ ...FIRST, replaces: "0.0.9" })).toThrow("does not have");
  });

  test("names every image by its digest, in relatedImages", () => {
    expect(relatedImages.map(({ image }) => image)).toEqual([FIRST.image, FIRST.image]);
    for (const image of ["usher:0.1.0", "usher", "usher@sha256:12", `usher:0.1.0@sha256:${"1".repeat(64)}`]) {
      expect(() => byDigest(image)).toThrow("digest");
      expect(() => bundleOf({ ...FIRST, image })).toThrow("digest");
      expect(() => olmFiles({ ...FIRST, bundleImage: image })).toThrow("digest");
    }
    expect(byDigest(`localhost:5000/usher@sha256:${"1".repeat(64)}`)).toContain("5000");
    const text = JSON.stringify(csv);
    const others = JSON.parse(text.replace(`"value":"${FIRST.image}"`, `"value":"${digest("other", "5")}"`));
    expect(() => refuseTags(others)).toThrow("not in relatedImages");
    const tagged = JSON.parse(text.replace(`"image":"${FIRST.image}"`, '"image":"usher:0.1.0"'));
    expect(() => refuseTags(tagged)).toThrow("digest");
  });
});
