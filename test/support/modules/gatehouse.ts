import { z } from "zod";
import { allow, deny } from "../../../src/core/decision/decision.ts";
import { listAt, stringAt } from "../../../src/core/json.ts";
import type { ModuleDeclaration } from "../../../src/core/module/declaration.ts";
import { defineModule, type Module } from "../../../src/core/module/module.ts";
import type { ConfigurationWrapper } from "../../../src/core/policy/configuration.ts";
import type { Kind } from "../../../src/core/policy/kind.ts";

/** The closed nodes: by the configuration, or by a policy. */
interface Closed {
  readonly origin: string;
  readonly nodes: readonly string[];
}

const GROUP = "gatehouse.usher.dev";

const ADMISSION: ConfigurationWrapper = {
  apiVersions: ["apiserver.config.k8s.io/v1"],
  kind: "AdmissionConfiguration",
  paths: [["plugins", "*", "configuration"]],
  // kube-apiserver decodes it strictly.
  schema: z.strictObject({
    apiVersion: z.string(),
    kind: z.string(),
    plugins: z.array(
      z.strictObject({
        name: z.string(),
        path: z.string().optional(),
        configuration: z.unknown().optional(),
      }),
    ),
  }),
};

const KUBE_API_SERVER: ConfigurationWrapper = {
  apiVersions: ["kubecontrolplane.config.openshift.io/v1"],
  kind: "KubeAPIServerConfig",
  paths: [["admission", "pluginConfig", "*", "configuration"]],
};

const version = {
  name: "v1alpha1",
  storage: true,
  spec: z.strictObject({ closed: z.array(z.string()), mode: z.enum(["Inform", "Enable"]).optional() }),
};

const prepare: Kind<Closed>["prepare"] = (object, { kind, name }) => ({
  policy: { origin: `${kind} ${name}`, nodes: listAt(object, "spec", "closed").map(String) },
  problems: [],
});

/** Kinds of both forms: `GatehouseConfig` is a configuration file, `Gatehouse` is a custom resource. */
const kinds: Kind<Closed>[] = [
  {
    group: GROUP,
    kind: "GatehouseConfig",
    plural: "gatehouseconfigs",
    singular: "gatehouseconfig",
    scope: "Cluster",
    standing: "file",
    configuration: {
      apiVersions: { [`${GROUP}/v1alpha1`]: "v1alpha1", [`${GROUP}/alphav1`]: "v1alpha1", v1: "v1alpha1" },
      wrappers: [ADMISSION, KUBE_API_SERVER],
    },
    summary: "closed nodes, as a file",
    versions: [version],
    prepare,
  },
  {
    group: GROUP,
    kind: "Gatehouse",
    plural: "gatehouses",
    singular: "gatehouse",
    scope: "Cluster",
    standing: "resource",
    summary: "closed nodes, as a custom resource",
    versions: [version],
    prepare,
  },
];

const gatehouse: Module = defineModule<Closed>({
  name: "gatehouse",
  summary: "keeps pods off closed nodes",
  kinds,
  reads: [
    {
      resource: "nodes",
      group: "",
      version: "v1",
      kind: "Node",
      scope: "Cluster",
      keep: [["metadata", "labels"]],
    },
  ],
  hooks: () => [
    {
      name: "gatehouse",
      module: "gatehouse",
      phase: "validate",
      failure: "open",
      tooLarge: "allow",
      timeoutSeconds: 5,
      sideEffects: "None",
      rules: [{ groups: [""], versions: ["v1"], resources: ["pods"], operations: ["CREATE"] }],
    },
  ],
  assemble: (policies) => ({
    validate: ({ request, view }) => {
      const node = stringAt(request.object, "spec", "nodeName") ?? "";
      const by = policies.filter(({ nodes }) => nodes.includes(node)).map(({ origin }) => origin);
      if (by.length === 0) return allow();
      const known = view.get("nodes", "", node) === undefined ? "unknown" : "known";
      const message = `${known} node ${node} is closed by ${by.sort().join(" and ")}`;
      return deny({ code: 403, reason: "Forbidden", message }, []);
    },
  }),
});

export const declarations: readonly ModuleDeclaration[] = [
  { name: gatehouse.name, summary: gatehouse.summary, load: async () => gatehouse },
];

/** A configuration as OpenShift prints it, three levels inside the configuration of another component. */
export const WRAPPED_CONFIGURATION = `apiVersion: kubecontrolplane.config.openshift.io/v1
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
