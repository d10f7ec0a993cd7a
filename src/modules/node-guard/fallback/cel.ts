import {
  SERVICE_ACCOUNT,
  SERVICE_ACCOUNTS_OF,
  serviceAccountUser,
} from "../../../core/kubernetes/principals.ts";
import type { CompiledSelector } from "../../../core/kubernetes/selectors/label-selector.ts";
import { ACCESS_GROUP, ACCESS_RESOURCE } from "../claims/evaluate-claim.ts";
import type { Group, GroupEntry } from "../groups/group.ts";

/** CEL text. A JSON string literal is one of CEL, too: names have no control characters. */
export const quoted = (text: string): string => JSON.stringify(text);
const list = (items: readonly string[]): string => `[${items.map(quoted).join(", ")}]`;
const anyOf = (parts: readonly string[]): string => (parts.length === 0 ? "false" : parts.join(" || "));

const USER = "request.userInfo.username";
const USER_GROUPS = "request.userInfo.?groups.orValue([])";

/** Whether the sender of the request is one of these entries, equivalent to `EntryIndex.actor`. */
export function actorExpression(entries: readonly GroupEntry[]): string {
  const actors = entries.filter(({ as }) => as !== "pod");
  const users = actors.flatMap(({ kind, namespace, name }) =>
    kind === "user" ? [name] : kind === "serviceAccount" ? [serviceAccountUser(namespace, name)] : [],
  );
  const groups = actors.flatMap(({ kind, name }) => (kind === "group" ? [name] : []));
  const prefixes = actors.flatMap(({ kind, namespace, name }) =>
    kind === "prefix" ? [`^${SERVICE_ACCOUNT}${pattern(namespace)}[^:]*:${pattern(name)}$`] : [],
  );
  return anyOf([
    ...(users.length === 0 ? [] : [`${USER} in ${list(unique(users))}`]),
    ...(groups.length === 0 ? [] : [`${USER_GROUPS}.exists(g, g in ${list(unique(groups))})`]),
    ...unique(prefixes).map((one) => `${USER}.matches(${quoted(one)})`),
  ]);
}

/** Whether RBAC lets the sender of the request assign pods to nodes of the group, equivalent to `authorizeActor`. */
export function mayAssign({ name }: Group): string {
  const resource = `group(${quoted(ACCESS_GROUP)}).resource(${quoted(ACCESS_RESOURCE)})`;
  return `authorizer.${resource}.name(${quoted(name)}).check("assign").allowed()`;
}

/**
 * Whether the pod may run on the group's nodes, equivalent to `EntryIndex.pod`. A binding does not name its pod's
 * account: without `account` every pod of the account's namespace counts, so that nothing is refused that the webhook
 * admits.
 */
export function podExpression(
  entries: readonly GroupEntry[],
  scope: Group["serviceAccountScope"],
  account: string | undefined,
): string {
  const pods = entries.filter(({ as }) => as !== "actor");
  const exact = scope === "Exact" && account !== undefined;
  const accounts = pods.filter(({ kind }) => kind === "serviceAccount");
  const namespaces = [
    ...(exact ? [] : accounts.map(({ namespace }) => namespace)),
    ...pods.flatMap(({ kind, name }) =>
      kind === "group" && name.startsWith(SERVICE_ACCOUNTS_OF)
        ? [name.slice(SERVICE_ACCOUNTS_OF.length)]
        : [],
    ),
  ];
  const named = exact ? accounts.map(({ namespace, name }) => `${namespace}/${name}`) : [];
  const prefixes = pods
    .filter(({ kind }) => kind === "prefix")
    .map(({ namespace, name }) => {
      const inNamespace = `request.namespace.startsWith(${quoted(namespace)})`;
      return exact ? `(${inNamespace} && ${account} == ${quoted(name)})` : inNamespace;
    });
  return anyOf([
    ...(namespaces.length === 0 ? [] : [`request.namespace in ${list(unique(namespaces))}`]),
    ...(named.length === 0 ? [] : [`request.namespace + "/" + ${account} in ${list(unique(named))}`]),
    ...unique(prefixes),
  ]);
}

/** The account of a pod at CREATE; without one it runs as `default`. */
export const POD_ACCOUNT =
  '(object.spec.?serviceAccountName.orValue("") == "" ? "default" : object.spec.serviceAccountName)';

/** The kubelet's own mirror pod: the annotation alone proves nothing. */
export const MIRROR =
  '"kubernetes.io/config.mirror" in object.metadata.?annotations.orValue({})' +
  ` && ${USER} == "system:node:" + object.spec.?nodeName.orValue("")` +
  ` && "system:nodes" in ${USER_GROUPS}`;

/** Whether the labels of `object` or `oldObject` match a selector, equivalent to `matches`. */
export function selectorExpression(selector: CompiledSelector, of: "object" | "oldObject"): string {
  if (selector.kind !== "requirements") return String(selector.kind === "everything");
  const labels = `${of}.metadata.?labels.orValue({})`;
  return selector.requirements
    .map(({ key, operator, values }) => {
      const has = `${quoted(key)} in ${labels}`;
      const isOne = `${labels}[${quoted(key)}] in ${list([...values].sort())}`;
      if (operator === "Exists" || operator === "DoesNotExist")
        return operator === "Exists" ? `(${has})` : `!(${has})`;
      return `${operator === "In" ? "" : "!"}(${has} && ${isOne})`;
    })
    .join(" && ");
}

/** Names of namespaces and accounts have dots, and no other character with a meaning in a pattern. */
function pattern(text: string): string {
  return text.replaceAll(".", "[.]");
}

function unique(items: readonly string[]): string[] {
  return [...new Set(items)].sort();
}
