import { applyPatch } from "rfc6902";
import { evaluate } from "../../src/core/evaluate/evaluate.ts";
import { responseOf } from "../../src/core/evaluate/response.ts";
import { type JsonObject, stringAt } from "../../src/core/json.ts";
import { atOnce, callOf } from "./evaluation.ts";
import { again } from "./json.ts";
import { nodeLabelsWith } from "./node.ts";
import { outside } from "./outside.ts";
import { requestFor } from "./request.ts";

export const kubelet = (name: string) => ({
  username: `system:node:${name}`,
  groups: ["system:nodes", "system:authenticated"],
});

/** The API server gives each object a uid. */
function ofFile(object: JsonObject): JsonObject {
  const { uid: _uid, ...metadata } = object["metadata"] as JsonObject;
  return { ...object, metadata };
}

interface MutatedNode {
  readonly allowed: boolean;
  readonly node: JsonObject;
  readonly findings: readonly string[];
}

/** A new node as stored by the API server after the patch of mutate-node, by rules of files: those of a cluster have a ledger. */
export function mutated(
  policies: readonly JsonObject[],
  one: JsonObject,
  asKubelet = false,
  settings?: JsonObject,
  known: readonly JsonObject[] = [],
): MutatedNode {
  const assembly = nodeLabelsWith([...policies.map(ofFile), ...known], settings);
  const request = requestFor(
    again(one),
    asKubelet ? { userInfo: kubelet(stringAt(one, "metadata", "name") ?? "") } : {},
  );
  const evaluation = atOnce(evaluate(callOf(assembly, request), outside()));
  const response = responseOf(evaluation);
  const object = again(one);
  for (const error of applyPatch(
    object,
    (response.patch ?? []) as unknown as Parameters<typeof applyPatch>[1],
  ))
    if (error !== null) throw error;
  return {
    allowed: response.allowed,
    node: object,
    findings: evaluation.findings.map(({ rule: name, outcome, message }) => `${name} ${outcome}: ${message}`),
  };
}
