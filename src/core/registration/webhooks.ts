import { DEFAULT_WATCHDOG, type Installation } from "../installation/installation.ts";
import { canonical, type JsonObject } from "../json.ts";
import { NAMESPACE_NAME } from "../kubernetes/object.ts";
import { askedName, type Hook, type NamespaceScope, type Phase, type Rule } from "../module/hook.ts";
import { tidyRules } from "../module/rules.ts";
import { safeguard } from "../module/safeguard.ts";
import { injectorAnnotations } from "./certificates.ts";

/** How the API server reaches usher: a service in the cluster, or a URL without a path. */
type Endpoint =
  | { readonly service: { readonly name: string; readonly namespace: string; readonly port: number } }
  | { readonly url: string };

export interface WebhookOptions {
  readonly endpoint: Endpoint;
  /** The certificates to trust: PEM in base64, as the field holds it. @default the system's */
  readonly caBundle?: string;
  /** An unguessable first segment of every path, by which usher recognizes API servers. @default none */
  readonly pathToken?: string;
  /** Whether policies of the API server stand in for webhooks. @default false */
  readonly standby?: boolean;
  /** Of both configurations, in addition to an injector's. */
  readonly annotations?: Readonly<Record<string, string>>;
}

interface WebhookConfigurations {
  readonly mutating: JsonObject;
  readonly validating: JsonObject;
  readonly notes: readonly string[];
}

/** Entries must be named like a domain of three parts or more; ours end in this. */
const DOMAIN = "usher.dev";
/** The API server's limit for such a name. */
const NAME_LENGTH = 253;
/** The API server waits 1 to 30 seconds. */
const TIMEOUT_SECONDS = { least: 1, most: 30 };

/**
 * Both configurations, always both: to remove an entry, the configuration must be written without it. Hooks go through
 * `safeguard` here, so that nothing else can be registered.
 */
export function webhookConfigurations(
  hooks: readonly Hook[],
  installation: Installation,
  options: WebhookOptions,
): WebhookConfigurations {
  const { hooks: safe, notes: changed } = safeguard(hooks, installation);
  const annotations = { ...injectorAnnotations(installation), ...options.annotations };
  const notes = [...changed];
  const given = { ...options, annotations };
  return {
    mutating: configuration("MutatingWebhookConfiguration", "mutate", safe, installation, given, notes),
    validating: configuration("ValidatingWebhookConfiguration", "validate", safe, installation, given, notes),
    notes,
  };
}

function configuration(
  kind: string,
  phase: Phase,
  hooks: readonly Hook[],
  installation: Installation,
  options: WebhookOptions,
  notes: string[],
): JsonObject {
  const mine = hooks.filter((hook) => hook.phase === phase).flatMap((hook) => plainHook(hook, notes) ?? []);
  const groups = entries(mine, (hook) => isOpenable(hook, installation));
  const named = groups.map((group) => ({ group, name: entryName(group) }));
  const openable = named.filter(({ group }) => group.every((hook) => isOpenable(hook, installation)));
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind,
    metadata: {
      name: "usher",
      ...(options.standby === true && phase === "mutate" && { labels: { [STANDBY_LABEL]: STANDBY.ready } }),
      annotations: {
        ...options.annotations,
        [OPENABLE_ANNOTATION]: openable.map(({ name }) => name).join(","),
      },
    },
    webhooks: named.map(({ group, name }) => entry(group, name, options)),
  };
}

/**
 * On the mutating configuration: `ready` if policies of the API server can stand in for webhooks, `active` while they do.
 * Bindings of these policies select it by this label as their parameter: without a parameter they match nothing, and one
 * write switches all of them. The watchdog has no right on the policies themselves.
 */
export const STANDBY_LABEL = "usher.dev/standby";
export const STANDBY = { ready: "ready", active: "active" } as const;

/** Names of the entries that the watchdog may open. It knows no modules, so the replicas mark them in the configuration itself. */
export const OPENABLE_ANNOTATION = "usher.dev/openable";

function isOpenable(
  { failure, staysClosed, module }: Hook,
  { watchdog = DEFAULT_WATCHDOG }: Installation,
): boolean {
  return failure === "closed" && (staysClosed !== true || watchdog.open.includes(module));
}

/** A hook in a form that the API server accepts; `undefined` if it matches nothing. */
function plainHook(hook: Hook, notes: string[]): Hook | undefined {
  if (hook.rules.length === 0 || hook.withdrawn === true) return undefined;
  const rules = tidyRules(hook.rules);
  const { namespaces } = hook;
  if (
    rules.length === 0 ||
    (namespaces !== undefined && "only" in namespaces && namespaces.only.length === 0)
  ) {
    notes.push(
      `${hook.name}: is left out, for it asks for ${rules.length === 0 ? "nothing" : "no namespace"}`,
    );
    return undefined;
  }
  const { least, most } = TIMEOUT_SECONDS;
  const timeoutSeconds = Math.min(most, Math.max(least, Math.trunc(hook.timeoutSeconds) || least));
  if (timeoutSeconds !== hook.timeoutSeconds)
    notes.push(
      `${hook.name}: waits ${timeoutSeconds} s instead of ${hook.timeoutSeconds} s, for ${least} to ${most} are allowed`,
    );
  return { ...hook, rules, timeoutSeconds };
}

/** Hooks that differ only in their rules, in the order of the first of each; split if the name would become too long. */
function entries(hooks: readonly Hook[], openable: (hook: Hook) => boolean): Hook[][] {
  const groups: Hook[][] = [];
  const open = new Map<string, Hook[]>();
  for (const hook of hooks) {
    const key = likeness(hook, openable(hook));
    const group = open.get(key);
    if (group !== undefined && entryName([...group, hook]).length <= NAME_LENGTH) group.push(hook);
    else {
      const fresh = [hook];
      open.set(key, fresh);
      groups.push(fresh);
    }
  }
  return groups;
}

function likeness(hook: Hook, openable: boolean): string {
  return canonical({
    openable,
    failure: hook.failure,
    timeoutSeconds: hook.timeoutSeconds,
    namespaces: selector(hook.namespaces),
    conditions: conditionsOf(hook),
    sideEffects: hook.sideEffects,
    reinvocation: hook.reinvocation ?? "Never",
  });
}

/**
 * The hooks of an entry, each a part of its name, so that a refusal names hooks as the documents do:
 * `placement.pod-os.usher.dev`. Names of hooks are unique and have no dots, so names of entries are unique, too.
 */
function entryName(hooks: readonly Hook[]): string {
  return [...hooks.map(({ name }) => name), DOMAIN].join(".");
}

function entry(group: readonly Hook[], name: string, options: WebhookOptions): JsonObject {
  const [first] = group;
  if (first === undefined) return {};
  const { pathToken } = options;
  const segments = [first.phase, ...new Set(group.map(askedName))];
  const path = `/${(pathToken === undefined ? segments : [pathToken, ...segments]).join("/")}`;
  const conditions = conditionsOf(first);
  return {
    name,
    admissionReviewVersions: ["v1"],
    clientConfig: clientConfig(path, options),
    // The same object may be sent in another group or version: it is the same pod.
    matchPolicy: "Equivalent",
    rules: tidyRules(group.flatMap(({ rules }) => rules)).map(ruleWithOperations),
    namespaceSelector: selector(first.namespaces),
    ...(conditions.length === 0 ? {} : { matchConditions: conditions }),
    failurePolicy: first.failure === "closed" ? "Fail" : "Ignore",
    timeoutSeconds: first.timeoutSeconds,
    sideEffects: first.sideEffects,
    ...(first.phase === "mutate" ? { reinvocationPolicy: first.reinvocation ?? "Never" } : {}),
  };
}

function clientConfig(path: string, { endpoint, caBundle }: WebhookOptions): JsonObject {
  const trusted = caBundle === undefined ? {} : { caBundle };
  if ("url" in endpoint) return { url: `${endpoint.url.replace(/\/+$/, "")}${path}`, ...trusted };
  const { namespace, name, port } = endpoint.service;
  return { service: { namespace, name, path, port }, ...trusted };
}

function ruleWithOperations({ groups, versions, resources, operations, scope }: Rule): JsonObject {
  return {
    apiGroups: groups,
    apiVersions: versions,
    resources,
    operations,
    scope: scope ?? "*",
  };
}

function conditionsOf({ conditions = [] }: Hook): JsonObject[] {
  return conditions.map(({ name, expression }) => ({ name, expression }));
}

function selector(scope: NamespaceScope | undefined): JsonObject {
  const [operator, names] =
    scope === undefined ? ["NotIn", []] : "except" in scope ? ["NotIn", scope.except] : ["In", scope.only];
  if (names.length === 0) return {};
  const values = [...new Set(names)].sort();
  return { matchExpressions: [{ key: NAMESPACE_NAME, operator, values }] };
}
