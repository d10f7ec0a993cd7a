import { X509Certificate } from "node:crypto";
import { z } from "zod";
import { type Gates, parseGates } from "../../core/installation/gates.ts";
import {
  CERTIFICATE_MODES,
  DEFAULT_INSTALLATION,
  DEFAULT_WATCHDOG,
  type Installation,
  type WatchdogSettings,
} from "../../core/installation/installation.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { checkSubdomain } from "../../core/kubernetes/names.ts";
import { parseVersion } from "../../core/kubernetes/versions.ts";
import { workloadTable } from "../../core/kubernetes/workloads.ts";
import type { Module } from "../../core/module/module.ts";
import { checkObject } from "../../core/policy/check.ts";
import type { Kind } from "../../core/policy/kind.ts";
import { type Problem, problem } from "../../core/policy/problem.ts";
import { Store } from "../../core/view/store.ts";
import { readText, Unreadable } from "../../files/reader/bytes.ts";
import {
  type DocumentValue,
  type Located,
  located,
  readManifests,
} from "../../files/reader/read-documents.ts";
import { CallError } from "../exit.ts";
import { describeProblems } from "../input/problems.ts";
import { settingsOf } from "./module-settings.ts";

const name = z.string().min(1).max(253);

/** `spec.networkPolicy` of the configuration. */
export const NETWORK_POLICY = z.strictObject({
  enabled: z
    .boolean()
    .optional()
    .describe("Whether there is a NetworkPolicy for usher's pods. Default false."),
  webhookCidrs: z
    .array(z.union([z.cidrv4(), z.cidrv6()], "must be a network, like 10.0.0.0/8 or fd00::/8"))
    .max(64)
    .optional()
    .describe("Networks from which API servers reach the webhook port. Default all."),
});

/** The settings of tracing. */
const tracing = z
  .strictObject({
    endpoint: z
      .string()
      .max(2_048)
      .regex(
        /^https?:\/\/[^\s/?#]+(\/[^\s?#]*)?$/,
        "must be a URL, such as http://collector.monitoring.svc:4318",
      )
      .describe("The URL of a collector that speaks OTLP over HTTP; /v1/traces is appended."),
    sampling: z
      .number()
      .min(0)
      .max(1)
      .optional()
      .describe("The share of reviews that are traced if the API server sends no traceparent. Default 1."),
  })
  .optional()
  .describe("The collector of review spans. Default none: reviews are not traced.");

/** `spec.watchdog` of the configuration. */
const WATCHDOG = z.strictObject({
  enabled: z.boolean().optional().describe("Whether webhooks are ever opened. Default true."),
  openAfterSeconds: z
    .int()
    .min(5)
    .max(86_400)
    .optional()
    .describe("Seconds without a ready replica after which fail-closed webhooks are opened. Default 300."),
  fallbackAfterSeconds: z
    .int()
    .min(5)
    .max(86_400)
    .optional()
    .describe(
      "Seconds without a ready replica after which policies of the API server stand in for webhooks, for modules with fallback: Compiled. Default 15.",
    ),
  open: z
    .array(name)
    .max(64)
    .optional()
    .describe("Modules whose webhooks are opened although they stay closed by default. Default none."),
});

const spec = z.strictObject({
  namespace: name.optional().describe("The namespace of usher. Default usher-system."),
  controlPlaneNamespaces: z
    .array(name)
    .max(64)
    .optional()
    .describe(
      "Namespaces of the control plane in addition to kube-system, kube-public and kube-node-lease. Default none.",
    ),
  openNamespaces: z
    .array(name)
    .max(64)
    .optional()
    .describe("Namespaces of the control plane, or usher's own, that are not exempt. Default none."),
  excludedNamespaces: z
    .array(name)
    .max(256)
    .optional()
    .describe("Namespaces that usher ignores completely: no webhook matches them. Default none."),
  workloads: z
    .array(
      z.strictObject({
        group: name.describe("API group, such as argoproj.io."),
        version: name,
        kind: name,
        resource: name.describe("Plural name, as in URLs: rollouts."),
        template: z
          .string()
          .regex(
            /^[A-Za-z0-9]+(\.[A-Za-z0-9]+)*$/,
            "must be field names separated by dots, such as spec.template",
          )
          .max(253)
          .describe("Path of the pod template: spec.template."),
      }),
    )
    .max(64)
    .optional()
    .describe("Additional kinds with a pod template."),
  kubernetesVersion: z
    .string()
    .regex(/^v?[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3})?$/, "must be a release of Kubernetes, like 1.37")
    .optional()
    .describe("The release that usher assumes without an API server. Default unknown."),
  manageCrds: z
    .boolean()
    .optional()
    .describe(
      "Whether usher registers and repairs its CRDs. With false it has no permission on them, and you apply them. Default true.",
    ),
  featureGates: z.record(name, z.boolean()).optional().describe("Feature gates."),
  certificates: z
    .enum(CERTIFICATE_MODES)
    .optional()
    .describe(
      "The issuer of the serving certificate: usher, cert-manager, OpenShift's service CA or you. Default Own.",
    ),
  certificateSecret: name
    .optional()
    .describe("With certificates: Secret, the name of the Secret. Default usher-serving-certificate."),
  certificateIssuer: z
    .strictObject({
      name,
      kind: name.optional().describe("Issuer or ClusterIssuer, or a kind of another group. Default Issuer."),
      group: name.optional().describe("Default cert-manager.io."),
    })
    .optional()
    .describe("With certificates: CertManager, the issuer. Default a CA for usher alone."),
  manageWebhooks: z
    .boolean()
    .optional()
    .describe("Whether usher writes its webhook configurations, and the objects of modules. Default true."),
  previewPolicies: z
    .boolean()
    .optional()
    .describe(
      "Whether the write of a policy, or of the Pod Security labels of a namespace where usher enforces them, is answered with warnings about what it changes for existing pods, nodes and users. Default true.",
    ),
  controlPlaneNodes: z
    .boolean()
    .optional()
    .describe("Whether usher's pods run on nodes of the control plane, and only there. Default false."),
  networkPolicy: NETWORK_POLICY.optional().describe("The NetworkPolicy of usher's pods. Default none."),
  clientCa: z
    .string()
    .max(65_536)
    .optional()
    .describe(
      "The CA of the client certificates that API servers present to webhooks, as PEM: other clients are refused. Default any client may call.",
    ),
  tracing,
  watchdog: WATCHDOG.optional().describe(
    "The watchdog, which opens webhooks while no replica of usher is ready.",
  ),
  modules: z
    .record(name, z.record(z.string(), z.unknown()))
    .optional()
    .describe("Settings of modules, by name: enabled, and those of the module's README."),
});

/** The configuration of an installation, as a file. */
export const CONFIGURATION: Kind<never> = {
  group: "usher.dev",
  kind: "UsherConfiguration",
  plural: "usherconfigurations",
  singular: "usherconfiguration",
  scope: "Cluster",
  standing: "file",
  summary: "configuration of one installation",
  versions: [{ name: "v1alpha1", storage: true, spec }],
  prepare: () => ({ policy: undefined, problems: [] }),
};

interface Configured {
  readonly installation: Installation;
  readonly gates: Gates;
}

export type Configuration = z.infer<typeof spec>;

/** Combines a configuration with --feature-gates, which takes precedence. */
export function configure(
  modules: readonly Module[],
  read: Configuration,
  featureGates: string | undefined,
): Configured {
  const declared = modules.flatMap(({ gates }) => gates ?? []);
  const fromFile = Object.entries(read.featureGates ?? {}).map(([gate, on]) => `${gate}=${on}`);
  const { gates, problems } = parseGates([...fromFile, featureGates ?? ""].join(","), declared);
  if (problems.length > 0) throw new CallError(problems.join("\n"));
  const version = parseVersion(read.kubernetesVersion ?? "");
  const workloads = (read.workloads ?? []).map((kind) => ({ ...kind, template: kind.template.split(".") }));
  return {
    gates,
    installation: {
      namespace: read.namespace ?? DEFAULT_INSTALLATION.namespace,
      controlPlaneNamespaces: read.controlPlaneNamespaces ?? DEFAULT_INSTALLATION.controlPlaneNamespaces,
      opened: read.openNamespaces ?? [],
      excluded: read.excludedNamespaces ?? [],
      manageCrds: read.manageCrds ?? true,
      workloads: workloadTable(workloads),
      watchdog: watchdogOf(modules, read.watchdog ?? {}),
      settings: settingsOf(modules, read.modules ?? {}),
      ...certificatesOf(read),
      ...(read.manageWebhooks === undefined ? {} : { manageWebhooks: read.manageWebhooks }),
      ...(read.previewPolicies === undefined ? {} : { previewPolicies: read.previewPolicies }),
      ...(read.controlPlaneNodes === undefined ? {} : { controlPlaneNodes: read.controlPlaneNodes }),
      ...networkPolicyOf(read.networkPolicy),
      ...clientCaOf(read.clientCa),
      ...tracingOf(read.tracing),
      ...(version === undefined ? {} : { kubernetesVersion: { effective: version, binary: version } }),
    },
  };
}

/** A setting of another mode would have no effect, so it is an error. */
function certificatesOf({
  certificates: mode = "Own",
  certificateSecret: secret,
  certificateIssuer: issuer,
}: Configuration): Pick<Installation, "certificates"> {
  if (secret !== undefined && mode !== "Secret")
    throw new CallError(`spec.certificateSecret: needs certificates: Secret, and it is ${mode}`);
  if (issuer !== undefined && mode !== "CertManager")
    throw new CallError(`spec.certificateIssuer: needs certificates: CertManager, and it is ${mode}`);
  const wrong = secret === undefined ? undefined : checkSubdomain(secret);
  if (wrong !== undefined) throw new CallError(`spec.certificateSecret: ${wrong}`);
  if (mode === "Own") return {};
  return {
    certificates: {
      mode,
      ...(secret === undefined ? {} : { secret }),
      ...(issuer === undefined
        ? {}
        : {
            issuer: {
              name: issuer.name,
              kind: issuer.kind ?? "Issuer",
              group: issuer.group ?? "cert-manager.io",
            },
          }),
    },
  };
}

/** Reads the file of --config; without it, defaults apply. */
export async function readConfiguration(file: string | undefined): Promise<Configuration> {
  if (file === undefined) return {};
  const { text, located: unreadable } = await contentOf(file);
  return configurationIn(file, text, unreadable);
}

/** Parses a configuration; `label` names it in errors. */
export function configurationIn(
  label: string,
  text: string,
  unreadable: readonly Located[] = [],
): Configuration {
  const input = { name: label, text };
  const fail = (found: readonly Located[]) => {
    throw new CallError(describeProblems(found.map((one) => ({ input, located: one }))).join("\n"));
  };
  if (unreadable.length > 0) fail(unreadable);
  const { manifests, problems } = readManifests(text);
  if (problems.length > 0) fail(problems);
  const [manifest, second] = manifests;
  if (manifest === undefined || second !== undefined) {
    throw new CallError(`${label}: must be one document of kind ${CONFIGURATION.kind}`);
  }
  const wrong = problemsOf(manifest);
  if (wrong.length > 0) {
    const { document, path } = manifest;
    const place = { input, document, path };
    throw new CallError(describeProblems(wrong.map((one) => ({ place, problem: one }))).join("\n"));
  }
  return spec.parse(isObject(manifest.value) ? (manifest.value["spec"] ?? {}) : {});
}

/** Unknown fields would silently have no effect, so warnings are errors here. */
function problemsOf({ value }: DocumentValue): Problem[] {
  const object: JsonObject = isObject(value) ? value : {};
  if (object["kind"] !== CONFIGURATION.kind) {
    const where = object["kind"] === undefined ? [] : ["kind"];
    return [problem(where, `must be kind ${CONFIGURATION.kind}, with apiVersion usher.dev/v1alpha1`)];
  }
  return checkObject(CONFIGURATION, object, new Store());
}

async function contentOf(file: string): Promise<{ text: string; located: Located[] }> {
  try {
    const { text, problems } = await readText(file);
    return { text, located: problems.map((one) => located(text, one)) };
  } catch (error) {
    if (error instanceof Unreadable) throw new CallError(`--config ${file} ${error.message}`);
    throw error;
  }
}

function clientCaOf(clientCa: string | undefined): Pick<Installation, "clientCa"> {
  if (clientCa === undefined) return {};
  try {
    new X509Certificate(clientCa);
  } catch {
    throw new CallError("spec.clientCa: not a PEM certificate");
  }
  return { clientCa };
}

function networkPolicyOf(
  read: z.infer<typeof NETWORK_POLICY> | undefined,
): Pick<Installation, "networkPolicy"> {
  if (read === undefined) return {};
  const { enabled = false, webhookCidrs = [] } = read;
  if (!enabled && webhookCidrs.length > 0)
    throw new CallError("spec.networkPolicy.webhookCidrs: needs enabled: true, or it has no effect");
  return { networkPolicy: { enabled, webhookCidrs } };
}

function tracingOf(read: z.infer<typeof tracing>): Pick<Installation, "tracing"> {
  if (read === undefined) return {};
  const { endpoint, sampling } = read;
  return { tracing: { endpoint, ...(sampling === undefined ? {} : { sampling }) } };
}

/** A module that does not exist would never be opened, although an administrator relies on it. */
function watchdogOf(
  modules: readonly Module[],
  { enabled, openAfterSeconds, fallbackAfterSeconds, open = [] }: z.infer<typeof WATCHDOG>,
): WatchdogSettings {
  const names = modules.map((module) => module.name);
  for (const [i, module] of open.entries()) {
    if (!names.includes(module))
      throw new CallError(`spec.watchdog.open[${i}]: no module ${module}; modules: ${names.join(", ")}`);
  }
  return {
    enabled: enabled ?? DEFAULT_WATCHDOG.enabled,
    openAfterSeconds: openAfterSeconds ?? DEFAULT_WATCHDOG.openAfterSeconds,
    ...(fallbackAfterSeconds === undefined ? {} : { fallbackAfterSeconds }),
    open,
  };
}
