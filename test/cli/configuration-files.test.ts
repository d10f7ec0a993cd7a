import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { requestFor } from "../builders/request.ts";
import { servingWith } from "../support/modules/program.ts";
import { post, readyOf } from "./serving.ts";
import { folder, usher } from "./usher.ts";

vi.mock("../../src/modules/index.ts", () => import("../support/modules/gatehouse.ts"));

/** A configuration as OpenShift prints it, three levels inside the configuration of another component. */
const WRAPPED = `apiVersion: kubecontrolplane.config.openshift.io/v1
kind: KubeAPIServerConfig
admission:
  pluginConfig:
    gatehouse.usher.dev/Gatehouse:
      configuration:
        apiVersion: gatehouse.usher.dev/alphav1
        kind: GatehouseConfig
        closed:
        - cp-0
`;

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

const NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: cp-0}\n";

const POLICY = `apiVersion: gatehouse.usher.dev/v1alpha1
kind: Gatehouse
metadata: {name: more}
spec: {closed: [cp-0, cp-2]}
`;

const pod = (nodeName: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", namespace: "shop" },
  spec: { nodeName, containers: [{ name: "c", image: "any" }] },
});

/** What `usher review` says of a pod on a node, and of the files. */
async function review(files: Record<string, string>, nodeName: string) {
  const source = folder(files);
  const ran = await usher(["review", "--source", source, "-o", "json", "-"], {
    stdin: JSON.stringify(pod(nodeName)),
  });
  return { ...ran, err: ran.err.replaceAll(`${source}/`, "") };
}

describe("configuration in files, through the real program", () => {
  test("usher review: a wrapped configuration decides, beside objects and policies of the same module", async () => {
    const files = { "kube.yaml": WRAPPED, "nodes.yaml": NODE, "policy.yaml": POLICY };
    const ran = await review(files, "cp-0");
    expect(ran.err).toBe("");
    expect(ran.out).toContain(
      "known node cp-0 is closed by Gatehouse more and GatehouseConfig configuration",
    );
    expect((await review(files, "cp-1")).out).toContain('"verdict": "allow"');
  });

  test.each([
    ["bare, in a legacy apiVersion", BARE, "cp-1"],
    ["in an AdmissionConfiguration", ADMISSION, "cp-0"],
  ])("%s", async (_, text, node) => {
    const ran = await review({ "a.yaml": text }, node);
    expect(ran.err).toBe("");
    expect(ran.out).toContain(`node ${node} is closed by GatehouseConfig configuration`);
  });

  test.each<[string, Record<string, string>, string[], boolean]>([
    [
      "an unknown field of the wrapper is shown, and the configuration is used",
      { "a.yaml": ADMISSION.replace("- name: Gatehouse", "- name: Gatehouse\n  confguration: {}") },
      [
        "a.yaml:5:3: plugins[0].confguration: is not a field here and has no effect",
        '     |   ^^^^^^^^^^^^ did you mean "configuration"?',
      ],
      true,
    ],
    [
      "an unknown field of the configuration is shown where it is written",
      { "a.yaml": `${WRAPPED}        closd: [cp-1]\n` },
      [
        "a.yaml:11:9: closd: is not a field here and has no effect",
        '      |         ^^^^^ did you mean "closed"?',
      ],
      true,
    ],
    [
      "a value that the schema refuses",
      { "a.yaml": `${WRAPPED}        mode: Enabled\n` },
      [
        'a.yaml:11:15: mode: "Enabled" is not one of Inform, Enable',
        '      |               ^^^^^^^ did you mean "Enable"?',
      ],
      false,
    ],
    [
      "two configurations: the first file's is used, and the other is an error",
      { "a.yaml": WRAPPED, "b.yaml": BARE },
      ["b.yaml:2:7: GatehouseConfig configuration is defined in a.yaml:8:15 already, and that one is used"],
      true,
    ],
    [
      "two configurations in one wrapper",
      {
        "a.yaml": `${ADMISSION}- name: Again\n  configuration: {apiVersion: v1, kind: GatehouseConfig, closed: [cp-9]}\n`,
      },
      ["a.yaml:10:41: GatehouseConfig configuration is defined in a.yaml:7:11 already, and that one is used"],
      true,
    ],
    [
      "an unknown version",
      { "a.yaml": WRAPPED.replace("/alphav1", "/v2") },
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
      { "a.yaml": WRAPPED.replace("- cp-0", "- cp-0\n        - yes") },
      ["a.yaml:11:11: closed[1]:", 'write it in quotes: "true"'],
      false,
    ],
    [
      "a wrapper that holds something else",
      { "a.yaml": WRAPPED.replace("kind: GatehouseConfig", "kind: Other") },
      [
        "a.yaml:2:1: kind: holds no configuration that usher reads: GatehouseConfig at admission.pluginConfig.*.configuration",
      ],
      false,
    ],
  ])("%s", async (_, files, expected, used) => {
    const ran = await review(files, "cp-0");
    for (const text of expected) expect(ran.err).toContain(text);
    expect(ran.out.includes("is closed by GatehouseConfig configuration")).toBe(used);
  });

  test("usher serve: answers by the configuration, follows its changes, and keeps the last good version", async () => {
    const source = folder({ "conf/kube.yaml": WRAPPED, "nodes.yaml": NODE, "policy.yaml": POLICY });
    const file = join(source, "conf/kube.yaml");
    const served = await servingWith("gatehouse.ts", [
      "--source",
      source,
      "-o",
      "json",
      "--drain-seconds",
      "0",
    ]);
    expect(await served.said(/ from /)).toMatch(/ · 1 policy, 1 gatehouseconfig, 1 node from /);
    const { webhook, ca = "" } = readyOf(served);
    const denied = async (node: string): Promise<string> => {
      const review = {
        apiVersion: "admission.k8s.io/v1",
        kind: "AdmissionReview",
        request: requestFor(pod(node)),
      };
      return (await post(`${webhook}/validate`, ca, review)).body;
    };
    expect(await denied("cp-0")).toContain("closed by Gatehouse more and GatehouseConfig configuration");
    expect(await denied("cp-1")).toContain('"allowed":true');
    writeFileSync(file, WRAPPED.replace("- cp-0", "- cp-1"));
    await served.said(/kube\.yaml: 1 gatehouseconfig changed \(configuration\)/);
    expect(await denied("cp-1")).toContain("closed by GatehouseConfig configuration");
    writeFileSync(file, readFileSync(file, "utf8").replace("closed:", "mode: on\n        closed:"));
    expect(await served.said(/still serving/)).toMatch(
      /kube\.yaml:9:15: mode: true is not one of Inform, Enable/,
    );
    expect(await denied("cp-1")).toContain("closed by GatehouseConfig configuration");
    served.child.kill("SIGTERM");
    expect((await served.end).code).toBe(0);
  });
});
