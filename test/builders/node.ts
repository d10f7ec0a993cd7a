import { applyPatch } from "rfc6902";
import type { PatchOperation } from "../../src/core/decision/patch.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import { type JsonObject, stringAt } from "../../src/core/json.ts";
import type { Assembly } from "../../src/core/module/assembly.ts";
import type { Change } from "../../src/core/view/view.ts";
import { desiredOf } from "../../src/modules/node-labels/desired/desired.ts";
import { differenceOf } from "../../src/modules/node-labels/desired/difference.ts";
import { nodePatch } from "../../src/modules/node-labels/desired/node-patch.ts";
import { ruleIndexOf } from "../../src/modules/node-labels/evaluator.ts";
import { nodeLabels } from "../../src/modules/node-labels/index.ts";
import type { TaintLedger } from "../../src/modules/node-labels/ledger/ledger-lines.ts";
import { graceLeft, type Ownership } from "../../src/modules/node-labels/rules/ownership.ts";
import type { RuleIndex } from "../../src/modules/node-labels/rules/rule-index.ts";
import { assemblyOf } from "./evaluation.ts";
import { again } from "./json.ts";

const API_VERSION = "node-labels.openshift.io/v1beta1";

/** A Labels object in the namespace `default`; `metadata` overrides fields. */
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

/** A change event: this object was created or updated. */
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

/** The module with its loaded state; `settings` is the installation's configuration of it. */
export function nodeLabelsWith(objects: readonly JsonObject[], settings?: JsonObject): Assembly {
  const installation =
    settings === undefined
      ? DEFAULT_INSTALLATION
      : { ...DEFAULT_INSTALLATION, settings: { "node-labels": settings } };
  return assemblyOf([nodeLabels], objects.map(arrived), installation);
}

export function indexWith(objects: readonly JsonObject[], settings?: JsonObject): RuleIndex {
  const index = ruleIndexOf(nodeLabelsWith(objects, settings));
  if (index === undefined) throw new Error("the module has no index");
  return index;
}

/** Includes every taint. */
const EVERY: TaintLedger = { includes: () => true };

/**
 * The patch that the controller would write to a node. Without `now` there is no grace period; `null` means that the
 * ledger could not be read.
 */
export function patchFor(
  one: JsonObject,
  index: RuleIndex,
  { now, firstSeen = now, ledger = EVERY }: PatchTime = {},
): PatchOperation[] {
  const options = {
    ...(ledger === null ? {} : { ledger }),
    ...(now === undefined || firstSeen === undefined
      ? {}
      : { graceLeft: (owner: Ownership) => graceLeft(owner, now - firstSeen, index.settings.graceMs, now) }),
  };
  return nodePatch(one, differenceOf(one, desiredOf(one, index), index.settings, options));
}

interface PatchTime {
  readonly now?: number;
  /** When each ownership was first seen. @default now */
  readonly firstSeen?: number;
  readonly ledger?: TaintLedger | null;
}

/** The node after the controller's patch. Every operation must apply, as in the API server. */
export function patched(one: JsonObject, index: RuleIndex): JsonObject {
  const made = again(one);
  const errors = applyPatch(made, patchFor(one, index) as Parameters<typeof applyPatch>[1]);
  for (const error of errors) if (error !== null) throw error;
  return made;
}
