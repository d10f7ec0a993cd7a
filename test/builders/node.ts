import { applyPatch } from "rfc6902";
import type { Assembly } from "../../src/core/evaluate/assembly.ts";
import type { PatchOperation } from "../../src/core/evaluate/patch.ts";
import { type JsonObject, stringAt } from "../../src/core/json.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/module/installation.ts";
import type { Change } from "../../src/core/view/view.ts";
import { desiredOf } from "../../src/modules/node-labels/desired/desired.ts";
import { differenceOf, type Vouching } from "../../src/modules/node-labels/desired/difference.ts";
import { nodePatch } from "../../src/modules/node-labels/desired/node-patch.ts";
import { nodeLabels } from "../../src/modules/node-labels/index.ts";
import { type RuleIndex, ruleIndexOf } from "../../src/modules/node-labels/rules/rule-index.ts";
import { assemblyOf } from "./evaluation.ts";
import { again } from "./json.ts";

const API_VERSION = "node-labels.openshift.io/v1beta1";

/** A Labels object in the namespace `default`; `metadata` says what is different. */
export function rule(name: string, spec: JsonObject, metadata: JsonObject = {}): JsonObject {
  return {
    apiVersion: API_VERSION,
    kind: "Labels",
    metadata: { name, namespace: "default", uid: `uid-of-${name}`, generation: 1, ...metadata },
    spec,
  };
}

export function owned(name: string, spec: JsonObject, metadata: JsonObject = {}): JsonObject {
  return {
    apiVersion: API_VERSION,
    kind: "OwnedLabels",
    metadata: { name, namespace: "default", generation: 1, ...metadata },
    spec,
  };
}

export function node(name: string, labels: JsonObject = {}, more: JsonObject = {}): JsonObject {
  const { metadata, ...rest } = more as { metadata?: JsonObject };
  return { apiVersion: "v1", kind: "Node", metadata: { name, labels, ...metadata }, ...rest };
}

const RESOURCES: Readonly<Record<string, string>> = {
  Labels: "labels.node-labels.openshift.io",
  OwnedLabels: "ownedlabels.node-labels.openshift.io",
  Node: "nodes",
  MutatingWebhookConfiguration: "mutatingwebhookconfigurations.admissionregistration.k8s.io",
};

/** That this object came, or changed into this. */
export function arrived(object: JsonObject): Change {
  return {
    resource: RESOURCES[stringAt(object, "kind") ?? ""] ?? "",
    namespace: stringAt(object, "metadata", "namespace") ?? "",
    name: stringAt(object, "metadata", "name") ?? "",
    object,
  };
}

export function left(object: JsonObject): Change {
  return { ...arrived(object), object: undefined };
}

/** The module with what it knows; `settings` is what the installation tells it. */
export function nodeLabelsWith(objects: readonly JsonObject[], settings?: JsonObject): Assembly {
  const installation =
    settings === undefined
      ? DEFAULT_INSTALLATION
      : { ...DEFAULT_INSTALLATION, settings: { "node-labels": settings } };
  return assemblyOf([nodeLabels], objects.map(arrived), installation);
}

export function bookWith(objects: readonly JsonObject[], settings?: JsonObject): RuleIndex {
  const book = ruleIndexOf(nodeLabelsWith(objects, settings).evaluator("node-labels"));
  if (book === undefined) throw new Error("the module has no book");
  return book;
}

/** Vouches for every taint. */
const EVERY: Vouching = { vouches: () => true };

/** The patch that the controller would write to a node; with `null` nobody could read the ledger. */
export function patchFor(
  one: JsonObject,
  book: RuleIndex,
  now?: number,
  ledger: Vouching | null = EVERY,
): PatchOperation[] {
  return nodePatch(one, differenceOf(one, desiredOf(one, book, now), book.settings, ledger ?? undefined));
}

/** The node as the controller leaves it. Every operation must apply, as the API server would have it. */
export function keptRight(one: JsonObject, book: RuleIndex, now?: number): JsonObject {
  const made = again(one);
  const errors = applyPatch(made, patchFor(one, book, now) as Parameters<typeof applyPatch>[1]);
  for (const error of errors) if (error !== null) throw error;
  return made;
}
