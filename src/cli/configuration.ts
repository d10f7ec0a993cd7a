import { readFileSync } from "node:fs";
import { z } from "zod";
import { checkObject } from "../core/check.ts";
import { type Gates, parseGates } from "../core/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../core/installation.ts";
import { isObject, type JsonObject } from "../core/json.ts";
import type { Kind } from "../core/kind.ts";
import { workloadTable } from "../core/kubernetes/workloads.ts";
import type { Module } from "../core/module.ts";
import { describeProblem } from "../core/problem.ts";
import { Store } from "../core/store.ts";
import { readManifests } from "../files/reading.ts";
import { CallError } from "./exit.ts";

const name = z.string().min(1).max(253);

const spec = z.strictObject({
  namespace: name.optional().describe("The namespace that usher runs in. Default usher-system."),
  controlPlaneNamespaces: z
    .array(name)
    .max(64)
    .optional()
    .describe("Where the control plane's pods live. Default kube-system, kube-public, kube-node-lease."),
  openNamespaces: z
    .array(name)
    .max(64)
    .optional()
    .describe(
      "Namespaces of the control plane, or usher's own, in which usher may change objects all the same. Default none.",
    ),
  workloads: z
    .array(
      z.strictObject({
        group: name.describe("For example argoproj.io"),
        version: name,
        kind: name,
        resource: name.describe("The plural, as in URLs: rollouts"),
        template: z
          .string()
          .regex(
            /^[A-Za-z0-9]+(\.[A-Za-z0-9]+)*$/,
            "must be field names with dots between them, like spec.template",
          )
          .max(253)
          .describe("Where the pod template is: spec.template"),
      }),
    )
    .max(64)
    .optional()
    .describe("Further kinds that hold a pod template."),
  featureGates: z.record(name, z.boolean()).optional().describe("Features to switch on or off."),
});

/** The configuration of an installation, as a file. */
export const CONFIGURATION: Kind<never> = {
  group: "usher.dev",
  kind: "UsherConfiguration",
  plural: "usherconfigurations",
  singular: "usherconfiguration",
  scope: "Cluster",
  standing: "file",
  summary: "what is true of one installation, whatever the policies say",
  versions: [{ name: "v1alpha1", storage: true, spec }],
  prepare: () => ({ policy: undefined, problems: [] }),
};

export interface Configured {
  readonly installation: Installation;
  readonly gates: Gates;
}

/** Reads --config and --feature-gates; the flag wins over the file. */
export function configure(
  modules: readonly Module[],
  options: { readonly config?: string; readonly featureGates?: string },
): Configured {
  const read = options.config === undefined ? {} : configurationFrom(options.config);
  const declared = modules.flatMap(({ gates }) => gates ?? []);
  const fromFile = Object.entries(read.featureGates ?? {}).map(([gate, on]) => `${gate}=${on}`);
  const { gates, problems } = parseGates([...fromFile, options.featureGates ?? ""].join(","), declared);
  if (problems.length > 0) throw new CallError(problems.join("\n"));
  const workloads = (read.workloads ?? []).map((kind) => ({ ...kind, template: kind.template.split(".") }));
  return {
    gates,
    installation: {
      namespace: read.namespace ?? DEFAULT_INSTALLATION.namespace,
      controlPlaneNamespaces: read.controlPlaneNamespaces ?? DEFAULT_INSTALLATION.controlPlaneNamespaces,
      opened: read.openNamespaces ?? [],
      workloads: workloadTable(workloads),
    },
  };
}

function configurationFrom(file: string): z.infer<typeof spec> {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new CallError(`${file}: can't be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  const { manifests, problems } = readManifests(text);
  const [manifest] = manifests;
  const object: JsonObject = isObject(manifest?.value) ? manifest.value : {};
  if (problems.length > 0 || manifests.length !== 1) {
    const said = problems.map((found) => `${file}:${found.line}:${found.column}: ${found.message}`);
    throw new CallError(
      said.length > 0 ? said.join("\n") : `${file}: one document is expected, with kind UsherConfiguration`,
    );
  }
  if (object["kind"] !== CONFIGURATION.kind) {
    throw new CallError(`${file}: kind must be ${CONFIGURATION.kind} (apiVersion usher.dev/v1alpha1)`);
  }
  const wrong = checkObject(CONFIGURATION, { metadata: { name: "usher" }, ...object }, new Store());
  // A field that is not known would have no effect, and a configuration without effect is a trap.
  if (wrong.length > 0)
    throw new CallError(wrong.map((found) => `${file}: ${describeProblem(found)}`).join("\n"));
  return spec.parse(object["spec"] ?? {});
}
