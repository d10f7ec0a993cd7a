// Compiled policies in files of the API server: `ManifestBasedAdmissionControlConfig`.
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { nameOf } from "../../src/core/kubernetes/object.ts";
import { type StaticFile, staticFiles } from "../../src/core/registration/static-manifests.ts";
import { compileNamed } from "../../src/modules/node-guard/fallback/compile.ts";
import type { Reply } from "../cluster/access/client.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import {
  guardAssembly,
  INSTALLATION,
  type Names,
  nodeObjects,
  policyOf,
} from "../support/node-guard/fallback.ts";

const NAMES: Names = {
  label: "guarded",
  listed: "listed",
  exact: "exact",
  tenant: "tenant",
  prefixed: "pre-1",
  prefix: "pre-",
  nodes: { guarded: ["cp-0", "cp-1"], free: "w-0" },
};
const NODES = nodeObjects(NAMES);
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const POLICIES = `${ADMISSION}/validatingadmissionpolicies`;
const BINDINGS = `${ADMISSION}/validatingadmissionpolicybindings`;
const ASSIGN = "usher-node-guard-guarded-assign.static.k8s.io";

const filesFor = (folder: string, nodes: readonly JsonObject[]): readonly StaticFile[] => {
  const { view } = guardAssembly([policyOf(NAMES, "Namespace"), ...nodes]);
  const { files, refused } = staticFiles(compileNamed(view, INSTALLATION), folder);
  expect(refused).toEqual([]);
  return files;
};

/** As a control-plane node gets them: each file complete from one moment to the next. */
const write = (folder: string, files: readonly StaticFile[]): void => {
  for (const { path, documents } of files) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(`${file}.new`, documents.map((one) => stringify(one)).join("---\n"));
    renameSync(`${file}.new`, file);
  }
};

const folder = mkdtempSync(join(tmpdir(), "usher-static-"));

const options = async () => {
  write(folder, filesFor(folder, NODES));
  return {
    without: ["kube-controller-manager", "kube-scheduler", "kwok"],
    flags: { "kube-apiserver": [`--admission-control-config-file=${join(folder, "admission.yaml")}`] },
  } as const;
};

describeOwnCluster("policies in files of the API server", options, (cluster) => {
  const pod = (nodeName: string): JsonObject => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p" },
    spec: { nodeName, automountServiceAccountToken: false, containers: [{ name: "c", image: "app:1" }] },
  });
  /** By a member of system:masters. */
  const create = (nodeName: string): Promise<Reply> =>
    cluster().request("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod(nodeName));
  const verdict = ({ status, body }: Reply): string =>
    `${status} ${/USHER-G\d+/.exec(stringAt(body, "message") ?? "")?.[0] ?? ""}`.trim();

  beforeAll(async () => {
    await eventually("the namespace default", async () => {
      const { status } = await cluster().request("GET", "/api/v1/namespaces/default");
      return status === 200;
    });
    await cluster().call("POST", "/api/v1/namespaces/default/serviceaccounts", {
      metadata: { name: "default" },
    });
    for (const node of NODES) await cluster().call("POST", "/api/v1/nodes", node);
  });

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("refuse a pod on a protected node, and admit one on another", async () => {
    const refused = await create("cp-0");
    expect(verdict(refused)).toBe("403 USHER-G01");
    expect(stringAt(refused.body, "message")).toContain(ASSIGN);
    expect(verdict(await create("w-0"))).toBe("201");
  });

  test("refuse a binding to a protected node", async () => {
    const binding = { metadata: { name: "p" }, target: { apiVersion: "v1", kind: "Node", name: "cp-1" } };
    const path = "/api/v1/namespaces/default/bindings?dryRun=All";
    expect(verdict(await cluster().request("POST", path, binding))).toBe("403 USHER-G02");
  });

  test("keep the labels of protected nodes, and protect a node by its name whatever its labels", async () => {
    const labels = { metadata: { labels: { guarded: null } } };
    expect(verdict(await cluster().request("PATCH", "/api/v1/nodes/cp-0", labels))).toBe("403 USHER-G09");
    await cluster().call("DELETE", "/api/v1/nodes/cp-0");
    await cluster().call("POST", "/api/v1/nodes", { metadata: { name: "cp-0" } });
    expect(verdict(await create("cp-0"))).toBe("403 USHER-G01");
  });

  test("can't be seen, deleted or replaced by an administrator through the API", async () => {
    for (const path of [POLICIES, BINDINGS]) {
      expect(
        listAt(await cluster().call("GET", path), "items").map((one) => nameOf(one as JsonObject)),
      ).toEqual([]);
      expect((await cluster().request("DELETE", `${path}/${ASSIGN}`)).status).toBe(404);
      expect((await cluster().request("DELETE", path)).status).toBe(200);
    }
    const { status, body } = await cluster().request("POST", POLICIES, {
      metadata: { name: ASSIGN },
      spec: { validations: [{ expression: "true" }] },
    });
    expect([status, stringAt(body, "message")]).toEqual([422, expect.stringContaining(".static.k8s.io")]);
    expect(verdict(await create("cp-0"))).toBe("403 USHER-G01");
  });

  test("hold from the first request that a restarted API server answers", async () => {
    const server = cluster().component("kube-apiserver");
    await server.stop("at once");
    const seen: string[] = [];
    let ready = false;
    const ask = async (): Promise<void> => {
      while (!ready) {
        seen.push(await create("cp-1").then(verdict, () => "no answer"));
        await sleep(5);
      }
    };
    const asking = ask();
    await server.start();
    await eventually("a verdict", async () => seen.includes("403 USHER-G01"));
    ready = true;
    await asking;
    // Before the authorizer and the informers are ready the API server refuses by itself.
    expect(seen.filter((one) => one.startsWith("2"))).toEqual([]);
    expect(seen).toContain("no answer");
  });

  test("follow changed files without a restart, and stay in force while a file is broken", async () => {
    write(
      folder,
      filesFor(
        folder,
        NODES.filter((node) => nameOf(node) !== "cp-1"),
      ),
    );
    await eventually("cp-1 to be free", async () => (await create("cp-1")).status === 201, 90_000);
    expect(verdict(await create("cp-0"))).toBe("403 USHER-G01");
    writeFileSync(join(folder, "validating-policies/broken.yaml"), "kind: ConfigMap\n");
    await sleep(3_000);
    expect(verdict(await create("cp-0"))).toBe("403 USHER-G01");
  });
});
