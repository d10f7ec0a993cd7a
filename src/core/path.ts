import { isObject, type Json, own } from "./json.ts";

/** A place inside an object: keys and list indexes from the top. */
export type Path = readonly (string | number)[];

/** RFC 6901: `~` and `/` inside a key are escaped, `~` first. */
export function pointer(path: Path): string {
  let text = "";
  for (const step of path) {
    text += `/${typeof step === "number" ? step : escaped(step)}`;
  }
  return text;
}

/** Few keys have either, and a replacement without a match costs more than a check. */
function escaped(key: string): string {
  const text = key.includes("~") ? key.replaceAll("~", "~0") : key;
  return text.includes("/") ? text.replaceAll("/", "~1") : text;
}

/** The steps of an RFC 6901 pointer; list indexes stay strings, because the pointer alone does not distinguish them from keys. */
export function steps(text: string): string[] {
  if (text === "") return [];
  const parts = text.slice(1).split("/");
  return text.includes("~") ? parts.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~")) : parts;
}

/** The value that a JSON pointer names. Its steps are indexes in a list and keys in an object. */
export function atPointer(value: Json | undefined, text: string): Json | undefined {
  let here = value;
  for (const step of steps(text)) {
    if (Array.isArray(here)) here = /^(?:0|[1-9][0-9]*)$/.test(step) ? here[Number(step)] : undefined;
    else here = isObject(here) ? own(here, step) : undefined;
    if (here === undefined) return undefined;
  }
  return here;
}

/** In Kubernetes' notation: `spec.containers[0].image`, `metadata.labels[app.kubernetes.io/name]`. */
export function fieldPath(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number" || /[^A-Za-z0-9_-]/.test(step) || step === "") text += `[${step}]`;
    else text += text === "" ? step : `.${step}`;
  }
  return text;
}

/** Parses the output of `fieldPath`; `undefined` for anything else. Digits in brackets are an index, or a key of a map. */
export function parseFieldPath(text: string): Path | undefined {
  const path: (string | number)[] = [];
  const step = /(?:^|\.)([A-Za-z0-9_-]+)|\[([^\]]+)\]/y;
  while (step.lastIndex < text.length) {
    const [, word, inner = ""] = step.exec(text) ?? [undefined, undefined, undefined];
    if (word === undefined && inner === "") return undefined;
    path.push(word ?? (/^(?:0|[1-9][0-9]{0,8})$/.test(inner) ? Number(inner) : inner));
  }
  return path.length === 0 ? undefined : path;
}
