import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Directory } from "../../../test/conformance/directory.ts";
import { declarations, WRAPPED_CONFIGURATION } from "../../../test/support/modules/gatehouse.ts";
import { loadModules } from "../../core/module/declaration.ts";

const modules = await loadModules(declarations);

const BARE = "apiVersion: v1\nkind: GatehouseConfig\nclosed: [cp-1]\n";

const ADMISSION = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: Gatehouse
  configuration:
    apiVersion: gatehouse.usher.dev/v1alpha1
    kind: GatehouseConfig
    closed: [cp-0]
`;

let directory: Directory;

beforeEach(async () => {
  directory = await Directory.make();
});

afterEach(() => directory.end());

/** Reads files and returns the nodes that the configuration in force closes. */
async function read(files: Readonly<Record<string, string>>): Promise<unknown> {
  for (const [name, text] of Object.entries(files)) await directory.write(name, text);
  const { assembly } = await directory.open({ modules });
  const [first] = assembly.policies("gatehouse");
  return first?.policy;
}

describe("configuration without metadata and spec", () => {
  test.each([
    ["bare, in a legacy apiVersion", BARE, "cp-1"],
    ["in an AdmissionConfiguration", ADMISSION, "cp-0"],
    ["in a KubeAPIServerConfig", WRAPPED_CONFIGURATION, "cp-0"],
  ])("%s", async (_, text, node) => {
    expect(await read({ "a.yaml": text })).toEqual({
      origin: "GatehouseConfig configuration",
      nodes: [node],
    });
    expect(directory.said()).toBe("");
  });

  test.each<[string, Record<string, string>, string[], boolean]>([
    [
      "an unknown field of the wrapper is shown, and the configuration is used",
      { "a.yaml": ADMISSION.replace("- name: Gatehouse", "- name: Gatehouse\n  confguration: {}") },
      [
        "a.yaml:5:3: warning: plugins[0].confguration: unknown field, has no effect",
        '     |   ^^^^^^^^^^^^ did you mean "configuration"?',
      ],
      true,
    ],
    [
      "an unknown field of the configuration is shown where it is written",
      { "a.yaml": `${WRAPPED_CONFIGURATION}        closd: [cp-1]\n` },
      [
        "a.yaml:11:9: warning: closd: unknown field, has no effect",
        '      |         ^^^^^ did you mean "closed"?',
      ],
      true,
    ],
    [
      "a value that the schema refuses",
      { "a.yaml": `${WRAPPED_CONFIGURATION}        mode: Enabled\n` },
      [
        'a.yaml:11:15: mode: unsupported value "Enabled": must be one of Inform, Enable',
        '      |               ^^^^^^^ did you mean "Enable"?',
      ],
      false,
    ],
    [
      "two configurations: the first file's is used, and the other is an error",
      { "a.yaml": WRAPPED_CONFIGURATION, "b.yaml": BARE },
      ["b.yaml:2:7: GatehouseConfig configuration is defined in a.yaml:8:15 already; that one is used"],
      true,
    ],
    [
      "two configurations in one wrapper",
      {
        "a.yaml": `${ADMISSION}- name: Again\n  configuration: {apiVersion: v1, kind: GatehouseConfig, closed: [cp-9]}\n`,
      },
      ["a.yaml:10:41: GatehouseConfig configuration is defined in a.yaml:7:11 already; that one is used"],
      true,
    ],
    [
      "an unknown version",
      { "a.yaml": WRAPPED_CONFIGURATION.replace("/alphav1", "/v2") },
      [
        'a.yaml:7:21: admission.pluginConfig[gatehouse.usher.dev/Gatehouse].configuration.apiVersion: GatehouseConfig has no version "gatehouse.usher.dev/v2"; use gatehouse.usher.dev/v1alpha1 or gatehouse.usher.dev/alphav1 or v1',
      ],
      false,
    ],
    [
      "an unknown version of the wrapper",
      { "a.yaml": ADMISSION.replace("k8s.io/v1", "k8s.io/v1alpha9") },
      [
        'a.yaml:1:13: apiVersion: AdmissionConfiguration has no version "apiserver.config.k8s.io/v1alpha9"; use apiserver.config.k8s.io/v1',
      ],
      false,
    ],
    [
      "a YAML 1.1 boolean among strings",
      { "a.yaml": WRAPPED_CONFIGURATION.replace("- cp-0", "- cp-0\n        - yes") },
      ["a.yaml:11:11: closed[1]:", 'write it in quotes: "yes"'],
      false,
    ],
    [
      "a wrapper that holds something else",
      { "a.yaml": WRAPPED_CONFIGURATION.replace("kind: GatehouseConfig", "kind: Other") },
      [
        "a.yaml:2:1: warning: kind: holds no configuration that usher reads: GatehouseConfig at admission.pluginConfig.*.configuration",
      ],
      false,
    ],
  ])("%s", async (_, files, expected, used) => {
    const policy = await read(files);
    const said = directory.said();
    for (const text of expected) expect(said).toContain(text);
    expect(policy).toEqual(used ? { origin: "GatehouseConfig configuration", nodes: ["cp-0"] } : undefined);
  });

  test("when one of two is removed the other is used, and two of one wrapper stay distinct when the file changes", async () => {
    const second =
      "- name: Again\n  configuration: {apiVersion: v1, kind: GatehouseConfig, closed: [cp-9]}\n";
    await directory.write("a.yaml", ADMISSION + second);
    const source = await directory.open({ modules });
    expect(source.problems).toHaveLength(1);
    await directory.write("a.yaml", `# moved\n${ADMISSION}${second}`);
    await source.refresh();
    expect(source.problems).toMatchObject([{ line: 11 }]);
    await directory.write("a.yaml", ADMISSION.replace("cp-0", "cp-9"));
    await source.refresh();
    expect(source.problems).toEqual([]);
    expect([...source.assembly.policies("gatehouse")]).toMatchObject([{ policy: { nodes: ["cp-9"] } }]);
  });
});
