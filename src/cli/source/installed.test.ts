import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { folder } from "../../../test/cli/usher.ts";
import { version } from "../version.ts";
import { installedConfiguration, type ReadInstalledOptions } from "./installed.ts";

const CONFIGURATION = JSON.stringify({
  apiVersion: "usher.dev/v1alpha1",
  kind: "UsherConfiguration",
  spec: { featureGates: { IdentifyPodOS: false } },
});

function configMap(labels: object, text = CONFIGURATION) {
  return { kind: "ConfigMap", metadata: { labels }, data: { "configuration.yaml": text } };
}

const VERSION = { "app.kubernetes.io/version": version() };

/** The API server's object at a path; a number is the status of a refusal. */
type Stored = Readonly<Record<string, object | number>>;

const IN_DEFAULT = "/api/v1/namespaces/usher-system/configmaps/usher-configuration";
const ELSEWHERE = IN_DEFAULT.replace("usher-system", "elsewhere");
const BINDING = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/usher";
const BINDING_ELSEWHERE = {
  kind: "ClusterRoleBinding",
  metadata: { name: "usher", labels: { "app.kubernetes.io/name": "usher" } },
  subjects: [{ kind: "ServiceAccount", name: "usher", namespace: "elsewhere" }],
};
const RESOURCES: Readonly<Record<string, readonly string[]>> = {
  "/apis/rbac.authorization.k8s.io/v1": ["clusterrolebindings ClusterRoleBinding"],
  "/apis/admissionregistration.k8s.io/v1": [
    "mutatingwebhookconfigurations MutatingWebhookConfiguration",
    "validatingwebhookconfigurations ValidatingWebhookConfiguration",
  ],
};

async function read(stored: Stored, forbidden: ReadInstalledOptions["forbidden"] = "ask") {
  const server = createServer(({ url = "" }, response) => {
    const path = url.replace(/\?.*/, "");
    const known = stored[path];
    const resources = RESOURCES[path]?.map((line) => {
      const [name, kind] = line.split(" ");
      return { name, kind, namespaced: false };
    });
    const list = path.endsWith("/deployments")
      ? { kind: "DeploymentList", metadata: {}, items: [] }
      : undefined;
    const found = known ?? list ?? (resources && { kind: "APIResourceList", resources }) ?? 404;
    const status = typeof found === "number" ? found : 200;
    const reason = status === 404 ? "NotFound" : "Forbidden";
    const details = { name: path.slice(path.lastIndexOf("/") + 1) };
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(typeof found === "number" ? { kind: "Status", reason, details } : found));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = {
    "current-context": "c",
    clusters: [{ name: "c", cluster: { server: url } }],
    users: [{ name: "c", user: {} }],
    contexts: [{ name: "c", context: { cluster: "c", user: "c" } }],
  };
  const kubeconfig = `${folder({ config: JSON.stringify(config) })}/config`;
  const notes: string[] = [];
  const note = (text: string) => void notes.push(text);
  const result = await installedConfiguration({ kubeconfig }, { note, forbidden }).catch(String);
  expect(notes[0]).toBe(`cluster ${url}`);
  return { result, notes: notes.slice(1) };
}

test("the configuration of the installation counts, and one line names it", async () => {
  expect(await read({ [IN_DEFAULT]: configMap(VERSION) })).toEqual({
    result: { namespace: "usher-system", featureGates: { IdentifyPodOS: false } },
    notes: [`installed usher ${version()}, configuration of usher-system`],
  });
});

test("names another version of usher beside that of this program", async () => {
  const { notes } = await read({ [IN_DEFAULT]: configMap({ "app.kubernetes.io/version": "0.0.7" }) });
  expect(notes).toEqual([
    `installed usher 0.0.7, configuration of usher-system; this program is ${version()}`,
  ]);
});

test("an installation in another namespace is found by its ClusterRoleBinding", async () => {
  const { result, notes } = await read({ [BINDING]: BINDING_ELSEWHERE, [ELSEWHERE]: configMap(VERSION) });
  expect(result).toMatchObject({ namespace: "elsewhere" });
  expect(notes).toEqual([`installed usher ${version()}, configuration of elsewhere`]);
});

test("without an installation the defaults apply, and the command reports it", async () => {
  expect(await read({})).toEqual({
    result: {},
    notes: [
      "usher is not installed in this cluster: the default configuration counts; --config names another",
    ],
  });
});

test.each([
  ["its own namespace", { [IN_DEFAULT]: 403, [BINDING]: 403 }, "usher-system"],
  ["another namespace", { [IN_DEFAULT]: 403, [BINDING]: BINDING_ELSEWHERE, [ELSEWHERE]: 403 }, "elsewhere"],
])("without permission to read it in %s the command asks for --config", async (_, stored, namespace) => {
  const message = `you are not allowed to read ConfigMap ${namespace}/usher-configuration, the configuration of the installed usher`;
  expect((await read(stored)).result).toBe(
    `Error: ${message}: ask an administrator for it, and pass it with --config`,
  );
  expect(await read(stored, "default")).toEqual({
    result: {},
    notes: [`${message}: the default configuration counts; --config names another`],
  });
});

test("a configuration that this version can't use is an error that asks for --config", async () => {
  const { result } = await read({
    [IN_DEFAULT]: configMap(VERSION, CONFIGURATION.replace("featureGates", "x")),
  });
  expect(result).toMatch(
    /^Error: ConfigMap usher-system\/usher-configuration:.*unknown field[\s\S]*--config$/,
  );
});
