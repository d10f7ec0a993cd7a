// The environment of a container from the pod's spec, and the expansion of `$(NAME)` in values, commands and arguments.
import { fieldValue } from "./fields.ts";
import type { KubeletApi } from "./kubelet-api.ts";
import type { ContainerSpec, EnvVar, KeyRef, Pod } from "./pod-spec.ts";
import { entriesOf, NotYet } from "./volumes.ts";

type Values = Map<string, string>;

/** `$(NAME)` becomes the value, `$$(NAME)` becomes `$(NAME)`, and an unknown name stays unchanged. */
export function expand(text: string, values: ReadonlyMap<string, string>): string {
  return text.replace(/\$\$|\$\(([^)]*)\)/g, (match, name: string | undefined) => {
    if (name === undefined) return "$";
    return values.get(name) ?? match;
  });
}

async function fromKey(
  api: KubeletApi,
  resource: "configmaps" | "secrets",
  ref: KeyRef,
): Promise<string | undefined> {
  const object = await api.read(resource, ref.name);
  const value = object === undefined ? undefined : entriesOf(object).get(ref.key);
  if (value === undefined && !ref.optional) throw new NotYet(`${resource} ${ref.name} has no key ${ref.key}`);
  return value?.toString("utf8");
}

async function variableValue(
  variable: EnvVar,
  values: Values,
  api: KubeletApi,
  field: (path: string) => string,
): Promise<string | undefined> {
  const from = variable.valueFrom;
  if (from?.fieldRef) return field(from.fieldRef.fieldPath);
  if (from?.configMapKeyRef) return fromKey(api, "configmaps", from.configMapKeyRef);
  if (from?.secretKeyRef) return fromKey(api, "secrets", from.secretKeyRef);
  return expand(variable.value ?? "", values);
}

export async function environmentOf(
  pod: Pod,
  container: ContainerSpec,
  api: KubeletApi,
  podIP: string,
  hostIP: string,
): Promise<Values> {
  const values: Values = new Map();
  for (const { prefix = "", configMapRef, secretRef } of container.envFrom ?? []) {
    const ref = configMapRef ?? secretRef;
    if (ref === undefined) continue;
    const object = await api.read(configMapRef ? "configmaps" : "secrets", ref.name);
    if (object === undefined && !ref.optional) throw new NotYet(`${ref.name} not found`);
    for (const [key, value] of object === undefined ? [] : entriesOf(object))
      values.set(prefix + key, value.toString("utf8"));
  }
  for (const variable of container.env ?? []) {
    const value = await variableValue(variable, values, api, (path) => fieldValue(pod, path, podIP, hostIP));
    if (value !== undefined) values.set(variable.name, value);
  }
  return values;
}
