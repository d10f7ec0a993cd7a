import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import type { CommandCode, InputDocuments } from "../../../core/module/command.ts";
import { byNames, Imported } from "./imported.ts";

/** Annotations of namespaces that OpenShift and the admission plugins of Kubernetes read. */
const OPENSHIFT_SELECTOR = "openshift.io/node-selector";
const NODE_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector";
const DEFAULT_TOLERATIONS = "scheduler.alpha.kubernetes.io/defaultTolerations";
const TOLERATIONS_WHITELIST = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";

/** Imports what in-tree admission does by annotations and configuration: all of it for pods alone, refusing conflicts of node selectors. */
export const inTreeCode: CommandCode<{ readonly file: readonly InputDocuments[] }> = {
  run: ({ args, parse }) => {
    const imported = new Imported();
    const documents = args.file.flatMap(({ name, documents: list }) =>
      list.map((value) => ({ file: name, value })),
    );
    const namespaces = documents.filter(({ value }) => stringAt(value, "kind") === "Namespace");
    for (const { file, value } of documents) {
      const what =
        `${file}: ${stringAt(value, "kind") ?? "a document"} ${stringAt(value, "metadata", "name") ?? ""}`.trimEnd();
      if (stringAt(value, "kind") === "Namespace") importNamespace(value, what, parse, imported);
      else if (
        stringAt(value, "apiVersion")?.startsWith("config.openshift.io/") &&
        stringAt(value, "kind") === "Scheduler"
      )
        importScheduler(
          value,
          what,
          namespaces.map((one) => one.value),
          imported,
        );
      else if (isObject(at(value, "podNodeSelectorPluginConfig")))
        importSelectorConfig(
          value,
          `${file}: podNodeSelectorPluginConfig`,
          namespaces.map((one) => one.value),
          imported,
        );
      else if (
        stringAt(value, "kind") === "Configuration" &&
        stringAt(value, "apiVersion")?.startsWith("podtolerationrestriction.")
      )
        importTolerationConfig(
          value,
          what,
          namespaces.map((one) => one.value),
          imported,
        );
      else
        imported.left(
          what,
          "it is not a Namespace, a Scheduler of OpenShift, or the configuration of PodNodeSelector or PodTolerationRestriction",
        );
    }
    return imported.report("no namespace has an annotation of an admission plugin");
  },
};

function annotation(namespace: Json, key: string): string | undefined {
  return stringAt(namespace, "metadata", "annotations", key);
}

const PODS = { podSelector: {}, targets: "Pods" } as const;

function importNamespace(
  namespace: Json,
  what: string,
  parse: (text: string) => Json | undefined,
  imported: Imported,
): void {
  const name = stringAt(namespace, "metadata", "name") ?? "";
  const namespaceSelector = byNames("In", [name]);
  for (const [key, short] of [
    [OPENSHIFT_SELECTOR, "node-selector"],
    [NODE_SELECTOR, "node-selector"],
  ] as const) {
    const text = annotation(namespace, key);
    if (text === undefined || text.trim() === "") continue;
    const nodeSelector = pairsOf(text);
    const of = `${what}, annotation ${key}`;
    if (nodeSelector === undefined) imported.left(of, `${JSON.stringify(text)} is not a list of key=value`);
    else
      imported.policy(of, `${name}-${short}`, {
        ...PODS,
        namespaceSelector,
        nodeSelector,
        onConflict: "Refuse",
      });
  }
  const text = annotation(namespace, DEFAULT_TOLERATIONS);
  const of = `${what}, annotation ${DEFAULT_TOLERATIONS}`;
  const tolerations = text === undefined ? undefined : parse(text);
  if (text !== undefined && !Array.isArray(tolerations))
    imported.left(of, "it is not a JSON list of tolerations");
  else if (Array.isArray(tolerations) && tolerations.length > 0) {
    imported.policy(of, `${name}-tolerations`, { ...PODS, namespaceSelector, tolerations });
    if (text !== undefined)
      imported.differs(
        of,
        "PodTolerationRestriction also tolerates memory pressure for pods with resource requests, which the plugin of the control plane adds",
      );
  }
  if (annotation(namespace, TOLERATIONS_WHITELIST) !== undefined)
    imported.left(
      `${what}, annotation ${TOLERATIONS_WHITELIST}`,
      "it refuses pods by their tolerations, and usher has no such policy; guard the nodes instead (module node-guard)",
    );
}

/** `defaultNodeSelector` counts where a namespace has no selector of its own, also where that is empty. */
function importScheduler(
  scheduler: Json,
  what: string,
  namespaces: readonly Json[],
  imported: Imported,
): void {
  const text = stringAt(scheduler, "spec", "defaultNodeSelector");
  if (text === undefined || text === "") {
    imported.left(what, "it has no spec.defaultNodeSelector");
    return;
  }
  defaultSelector(text, `${what}, spec.defaultNodeSelector`, namespaces, OPENSHIFT_SELECTOR, imported);
}

function importSelectorConfig(
  config: Json,
  what: string,
  namespaces: readonly Json[],
  imported: Imported,
): void {
  for (const [name, text] of Object.entries(
    (at(config, "podNodeSelectorPluginConfig") ?? {}) as JsonObject,
  )) {
    if (typeof text !== "string") imported.left(`${what}.${name}`, "it is not a text");
    else if (name === "clusterDefaultNodeSelector")
      defaultSelector(text, `${what}.${name}`, namespaces, NODE_SELECTOR, imported);
    else
      imported.left(
        `${what}.${name}`,
        "it lists the labels that pods of the namespace may select, and refuses others; usher has no such policy",
      );
  }
}

function defaultSelector(
  text: string,
  what: string,
  namespaces: readonly Json[],
  key: string,
  imported: Imported,
): void {
  const nodeSelector = pairsOf(text);
  if (nodeSelector === undefined) {
    imported.left(what, `${JSON.stringify(text)} is not a list of key=value`);
    return;
  }
  const own = namespaces
    .filter((one) => annotation(one, key) !== undefined)
    .map((one) => stringAt(one, "metadata", "name") ?? "");
  imported.policy(what, "default-node-selector", {
    ...PODS,
    namespaceSelector: byNames("NotIn", own),
    nodeSelector,
    onConflict: "Refuse",
  });
  imported.differs(
    what,
    `it is not for namespaces with the annotation ${key}: ${own.length === 0 ? "none is among the files, so that none is left out" : `${own.join(", ")} of the files are left out by name`}; add those that follow`,
  );
  if (key === OPENSHIFT_SELECTOR)
    imported.differs(
      what,
      "usher leaves the namespaces of the control plane alone, unless spec.openNamespaces of its configuration names them",
    );
}

function importTolerationConfig(
  config: Json,
  what: string,
  namespaces: readonly Json[],
  imported: Imported,
): void {
  const tolerations = listAt(config, "default");
  const own = namespaces
    .filter((one) => annotation(one, DEFAULT_TOLERATIONS) !== undefined)
    .map((one) => stringAt(one, "metadata", "name") ?? "");
  if (tolerations.length > 0)
    imported.policy(`${what}, default`, "default-tolerations", {
      ...PODS,
      namespaceSelector: byNames("NotIn", own),
      tolerations: [...tolerations],
    });
  if (listAt(config, "whitelist").length > 0)
    imported.left(
      `${what}, whitelist`,
      "it refuses pods by their tolerations, and usher has no such policy; guard the nodes instead (module node-guard)",
    );
}

/** `type=user,region=east` as labels. Other selectors can't be node selectors of a pod. */
function pairsOf(text: string): JsonObject | undefined {
  const pairs = text.split(",").map((pair) => pair.trim());
  const found = pairs.map((pair) => /^([^=!\s]+)={1,2}([^=\s]*)$/.exec(pair));
  if (found.some((one) => one === null)) return undefined;
  return Object.fromEntries(found.map((one) => [one?.[1] ?? "", one?.[2] ?? ""]));
}
