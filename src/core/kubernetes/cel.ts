import { isObject, type Json, type JsonObject } from "../json.ts";
import type { CompiledSelector } from "./selectors/label-selector.ts";

/** A string of CEL. A JSON string is one of CEL, too. */
export function celString(text: string): string {
  return JSON.stringify(text);
}

/**
 * A value of CEL. Kubernetes refuses lists and maps of several types, so that members of different types are declared
 * as `dyn`.
 */
export function celValue(value: Json): string {
  return typed(value).text;
}

interface Typed {
  readonly text: string;
  readonly type: string;
}

function typed(value: Json): Typed {
  if (value === null) return { text: "null", type: "null" };
  if (typeof value === "string") return { text: celString(value), type: "string" };
  if (typeof value !== "object") return { text: String(value), type: typeof value };
  const names = isObject(value) ? Object.keys(value).filter((name) => value[name] !== undefined) : [];
  const members = isObject(value)
    ? names.map((name) => typed(value[name] ?? null))
    : (value as readonly Json[]).map(typed);
  const types = new Set(members.map(({ type }) => type));
  const mixed = types.size > 1;
  const texts = members.map(({ text }) => (mixed ? `dyn(${text})` : text));
  const type = mixed ? "dyn" : [...types].join("");
  if (!isObject(value)) return { text: `[${texts.join(", ")}]`, type: `list ${type}` };
  const pairs = texts.map((text, i) => `${celString(names[i] ?? "")}: ${text}`);
  return { text: `{${pairs.join(", ")}}`, type: `map ${type}` };
}

/** A selector as it is written in a manifest. */
export function selectorObject(selector: CompiledSelector): JsonObject {
  if (selector.kind !== "requirements") return {};
  const matchExpressions = selector.requirements.map(({ key, operator, values }) => ({
    key,
    operator,
    ...(operator === "In" || operator === "NotIn" ? { values: [...values].sort() } : {}),
  }));
  return { matchExpressions };
}

const API = "admissionregistration.k8s.io/v1";

/** A policy of the API server and the binding that puts it into force. */
export function admissionPolicy(
  kind: "MutatingAdmissionPolicy" | "ValidatingAdmissionPolicy",
  name: string,
  spec: JsonObject,
  binding: JsonObject = {},
): readonly JsonObject[] {
  return [
    { apiVersion: API, kind, metadata: { name }, spec },
    { apiVersion: API, kind: `${kind}Binding`, metadata: { name }, spec: { policyName: name, ...binding } },
  ];
}
