import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { pod } from "../builders/pod.ts";
import { requestFor } from "../builders/request.ts";
import { WRAPPED_CONFIGURATION } from "../support/modules/gatehouse.ts";
import { programWith, servingWith } from "../support/modules/program.ts";
import { post, readyOf } from "./serving.ts";
import { folder } from "./usher.ts";

const NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: cp-0}\n";

const POLICY = `apiVersion: gatehouse.usher.dev/v1alpha1
kind: Gatehouse
metadata: {name: more}
spec: {closed: [cp-0, cp-2]}
`;

const podOn = (nodeName: string) =>
  pod({ name: "p", spec: { nodeName, containers: [{ name: "c", image: "any" }] } });

/** The output of `usher review` for a pod on a node, and for the files. */
async function review(files: Record<string, string>, nodeName: string) {
  const source = folder(files);
  const args = ["review", "--source", source, "-o", "json", "-"];
  const ran = await programWith("gatehouse.ts", args, JSON.stringify(podOn(nodeName)));
  return { ...ran, err: ran.err.replaceAll(`${source}/`, "") };
}

describe("configuration in files, through the real program", () => {
  test("usher review: a wrapped configuration is applied together with objects and policies of the same module", async () => {
    const files = { "kube.yaml": WRAPPED_CONFIGURATION, "nodes.yaml": NODE, "policy.yaml": POLICY };
    const ran = await review(files, "cp-0");
    expect(ran.err).toBe("");
    expect(ran.out).toContain(
      "known node cp-0 is closed by Gatehouse more and GatehouseConfig configuration",
    );
    expect((await review(files, "cp-1")).out).toContain('"verdict": "allow"');
  });

  test("usher serve: applies the configuration, follows its changes, and keeps the last good version", async () => {
    const source = folder({
      "conf/kube.yaml": WRAPPED_CONFIGURATION,
      "nodes.yaml": NODE,
      "policy.yaml": POLICY,
    });
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
        request: requestFor(podOn(node)),
      };
      return (await post(`${webhook}/validate`, ca, review)).body;
    };
    expect(await denied("cp-0")).toContain("closed by Gatehouse more and GatehouseConfig configuration");
    expect(await denied("cp-1")).toContain('"allowed":true');
    writeFileSync(file, WRAPPED_CONFIGURATION.replace("- cp-0", "- cp-1"));
    await served.said(/kube\.yaml: 1 gatehouseconfig changed \(configuration\)/);
    expect(await denied("cp-1")).toContain("closed by GatehouseConfig configuration");
    writeFileSync(file, readFileSync(file, "utf8").replace("closed:", "mode: on\n        closed:"));
    expect(await served.said(/still serving/)).toMatch(
      /kube\.yaml:9:15: mode: unsupported value true: must be one of Inform, Enable/,
    );
    expect(await denied("cp-1")).toContain("closed by GatehouseConfig configuration");
    served.child.kill("SIGTERM");
    expect((await served.end).code).toBe(0);
  });
});
