import { at, equal, isObject, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { withoutPolicyDefaults } from "../../core/kubernetes/admission-policy.ts";
import { byText } from "../../core/order.ts";
import { fieldPath, type Path } from "../../core/path.ts";
import { trusts } from "../certificates/certificate-record.ts";
import type { InjectedBundle } from "../certificates/webhook-certificates.ts";
import { openableNames, withOpenable } from "./opened.ts";
import { withStandbyOf } from "./standby.ts";

/**
 * Expressions that a managed control plane puts into the namespace selector of every webhook, so that its own pods are never behind one (Azure's
 * "admissions enforcer"). It adds them again at once, so removing them would never end, and they exempt only the
 * cloud's own namespaces. Any other narrowing is an edit to revert.
 */
const CLOUD_EXPRESSIONS: readonly JsonObject[] = [
  { key: "control-plane", operator: "DoesNotExist" },
  { key: "control-plane", operator: "NotIn", values: ["true"] },
  { key: "kubernetes.azure.com/managedby", operator: "NotIn", values: ["aks"] },
];

/** The desired webhook configuration, with the permitted additions of a cloud to the stored one. */
export function withCloudExpressions(wanted: JsonObject, live: JsonObject | undefined): JsonObject {
  const stored = new Map(listAt(live, "webhooks").map((entry) => [stringAt(entry, "name"), entry]));
  const webhooks = listAt(wanted, "webhooks").map((entry) => {
    const selector = at(entry, "namespaceSelector");
    const ours = listAt(selector, "matchExpressions");
    const added = listAt(stored.get(stringAt(entry, "name")), "namespaceSelector", "matchExpressions").filter(
      (one) => CLOUD_EXPRESSIONS.some((known) => equal(known, one)) && !ours.some((mine) => equal(mine, one)),
    );
    if (added.length === 0 || !isObject(entry)) return entry;
    const rest = isObject(selector) ? selector : {};
    return { ...entry, namespaceSelector: { ...rest, matchExpressions: [...ours, ...added] } };
  });
  return { ...wanted, webhooks };
}

/**
 * A webhook configuration if there is nothing new to trust: the published bundle stays, as long as it has the CA in
 * use. Otherwise that CA is better than nothing.
 */
export function withPublishedBundle(
  wanted: JsonObject,
  live: JsonObject,
  own: string | undefined,
): JsonObject {
  const bundles = listAt(live, "webhooks").map(
    (entry) => [stringAt(entry, "name"), stringAt(entry, "clientConfig", "caBundle")] as const,
  );
  const stored = new Map(bundles);
  const isGood = (bundle: string | undefined) =>
    own === undefined ? bundle !== undefined && bundle !== "" : trusts(bundle, own);
  const other = bundles.map(([, bundle]) => bundle).find(isGood);
  const fallback = other ?? (own === undefined ? undefined : Buffer.from(own).toString("base64"));
  const webhooks = listAt(wanted, "webhooks").map((entry) => {
    const published = stored.get(stringAt(entry, "name"));
    const caBundle = isGood(published) ? published : fallback;
    const clientConfig = at(entry, "clientConfig");
    if (caBundle === undefined || !isObject(entry) || !isObject(clientConfig)) return entry;
    return { ...entry, clientConfig: { ...clientConfig, caBundle } };
  });
  return { ...wanted, webhooks };
}

/**
 * A webhook configuration whose bundles an injector writes: each entry keeps its own, and a new one gets that of the
 * others until the injector has run. An entry stays fail-open until its bundle is good, because a fail-closed one would
 * refuse everything. It is not opened again.
 */
export function withInjectedBundle(
  wanted: JsonObject,
  live: JsonObject | undefined,
  { last, accepts }: InjectedBundle,
): JsonObject {
  const entries = listAt(live, "webhooks");
  const stored = new Map(entries.map((entry) => [stringAt(entry, "name"), entry]));
  const bundleOf = (entry: Json | undefined) => stringAt(entry, "clientConfig", "caBundle") || undefined;
  const other = entries.map(bundleOf).find((one) => one !== undefined) ?? last;
  const webhooks = listAt(wanted, "webhooks").map((entry) => {
    const before = stored.get(stringAt(entry, "name"));
    const caBundle = bundleOf(before) ?? other;
    const clientConfig = at(entry, "clientConfig");
    if (!isObject(entry) || !isObject(clientConfig)) return entry;
    const isClosed = stringAt(before, "failurePolicy") === "Fail";
    const trusted = caBundle !== undefined && (isClosed || accepts(caBundle));
    return {
      ...entry,
      ...(caBundle === undefined ? {} : { clientConfig: { ...clientConfig, caBundle } }),
      ...(trusted ? {} : { failurePolicy: "Ignore" }),
    };
  });
  return { ...wanted, webhooks };
}

/**
 * A webhook configuration while no replica is ready: its entries stay as they are stored, so that none becomes fail-closed
 * or covers more, whatever policies ask for meanwhile. What keeps replicas from becoming ready changes: an entry of which
 * nothing is wanted any more is removed, and the others are called by the current path and bundle. So does what locks the
 * cluster: an entry becomes fail-open if what is wanted of it is, and the watchdog may open what it might open of it.
 */
export function withStoredEntries(wanted: JsonObject, live: JsonObject): JsonObject {
  const entries = listAt(wanted, "webhooks");
  const openable = openableNames(wanted);
  const kept = listAt(live, "webhooks").flatMap((entry) => {
    const hooks = hookNames(entry);
    // Hooks are grouped otherwise by other policies.
    const of = entries.filter((one) => hookNames(one).some((name) => hooks.includes(name)));
    return isObject(entry) && of[0] !== undefined ? [{ entry, of, first: of[0] }] : [];
  });
  const webhooks = kept.map(({ entry, of, first }) => {
    const isOpen = of.every((one) => at(one, "failurePolicy") === "Ignore");
    const { head, names } = calledPath(first);
    const due = [...names, ...of.slice(1).flatMap((one) => calledPath(one).names)];
    const asked = calledPath(entry).names.filter((name) => due.includes(name));
    // An edited address names no hook.
    const called = asked.length === 0 ? due : asked;
    const clientConfig = at(first, "clientConfig") as JsonObject;
    const service = at(clientConfig, "service") as JsonObject;
    const path = [...head, ...new Set(called)].join("/");
    return {
      ...entry,
      clientConfig: { ...clientConfig, service: { ...service, path } },
      ...(isOpen ? { failurePolicy: "Ignore" } : {}),
    };
  });
  const isOpenable = (one: Json) => openable.has(stringAt(one, "name") ?? "");
  const names = kept.flatMap(({ entry, of }) => (of.every(isOpenable) ? [String(entry["name"])] : []));
  return { ...withOpenable(withStandbyOf(live, wanted), names), webhooks };
}

/** The hooks of an entry, which are its name: `placement.pod-os.usher.dev`. */
function hookNames(entry: Json): string[] {
  return (stringAt(entry, "name") ?? "").split(".").slice(0, -2);
}

/** A path has the names by which hooks are called, after the token and the phase: `/TOKEN/validate/HOOK/HOOK`. */
export function calledPath(entry: Json | undefined): {
  readonly head: readonly string[];
  readonly names: readonly string[];
} {
  const segments = (stringAt(entry, "clientConfig", "service", "path") ?? "").split("/");
  const phase = segments.findIndex((one) => one === "mutate" || one === "validate");
  return phase < 0
    ? { head: [], names: [] }
    : { head: segments.slice(0, phase + 1), names: segments.slice(phase + 1) };
}

/** Whether two stored states are equal in everything that deviations are found in. */
export function sameDesiredFields(one: JsonObject, other: JsonObject): boolean {
  const fields = ({ metadata, status: _status, ...rest }: JsonObject): Json => [
    at(metadata, "labels") ?? null,
    at(metadata, "annotations") ?? null,
    at(metadata, "ownerReferences") ?? null,
    rest,
  ];
  return equal(fields(one), fields(other));
}

/** Defaults that the API server writes into an entry. */
const ENTRY_DEFAULTS: JsonObject = { objectSelector: {}, namespaceSelector: {}, matchPolicy: "Equivalent" };

/**
 * Where a stored webhook configuration deviates from the desired one. Usher owns all of `webhooks`, so any other
 * content counts, and so do its owners: another one would keep it when usher is gone. Usher's labels and annotations
 * must be present; those of others stay.
 */
export function webhookDeviations(wanted: JsonObject, live: JsonObject): string[] {
  const filled = (object: JsonObject) =>
    listAt(object, "webhooks").map((entry) => (isObject(entry) ? { ...ENTRY_DEFAULTS, ...entry } : entry));
  return [
    ...markDeviations(wanted, live),
    ...ownerDeviations(wanted, live),
    ...differences(filled(wanted), filled(live), ["webhooks"]),
  ];
}

/**
 * Where the entries of a configuration that usher does not write differ from the desired ones. Any bundle and any path
 * token is right, but a token must be present.
 */
export function entryDeviations(wanted: JsonObject, live: JsonObject): string[] {
  const stored = listAt(live, "webhooks");
  const mine = withCloudExpressions(wanted, live);
  const plain = (entries: readonly Json[], token: RegExp) => ({
    webhooks: entries
      .map((entry) => withoutTheirs(entry, token))
      .sort(byText((one) => stringAt(one, "name") ?? "")),
  });
  return webhookDeviations(plain(listAt(mine, "webhooks"), MAY_HAVE_TOKEN), plain(stored, HAS_TOKEN));
}

const HAS_TOKEN = /^\/[0-9a-f]{40}(?=\/)/;
const MAY_HAVE_TOKEN = /^(?:\/[0-9a-f]{40})?(?=\/)/;

function withoutTheirs(entry: Json, token: RegExp): Json {
  const clientConfig = at(entry, "clientConfig");
  if (!isObject(entry) || !isObject(clientConfig)) return entry;
  const { caBundle: _caBundle, service, ...rest } = clientConfig;
  const path = (stringAt(service, "path") ?? "").replace(token, "/TOKEN");
  return {
    ...entry,
    clientConfig: { ...rest, ...(isObject(service) ? { service: { ...service, path } } : {}) },
  };
}

/** Where a stored object misses a field of usher. Additions of others or of the API server do not count. */
export function objectDeviations(wanted: JsonObject, live: JsonObject): string[] {
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...parts } = wanted;
  return [...markDeviations(wanted, live), ...ownerDeviations(wanted, live), ...missing(parts, live, [])];
}

/** Where a stored policy of the API server, or its binding, deviates: usher owns all of its spec. */
export function policyDeviations(wanted: JsonObject, live: JsonObject): string[] {
  const [ours, theirs] = [wanted, live].map(({ spec = null }) => withoutPolicyDefaults(spec));
  return [
    ...markDeviations(wanted, live),
    ...ownerDeviations(wanted, live),
    ...differences(ours, theirs, ["spec"]),
  ];
}

/** For labels and annotations. */
function markDeviations(wanted: JsonObject, live: JsonObject): string[] {
  return ["labels", "annotations"].flatMap((field) => {
    const path = ["metadata", field];
    return missing(at(wanted, ...path) ?? {}, at(live, ...path) ?? {}, path);
  });
}

function ownerDeviations(wanted: JsonObject, live: JsonObject): string[] {
  const uids = (object: JsonObject) =>
    listAt(object, "metadata", "ownerReferences").map((owner) => stringAt(owner, "uid") ?? "");
  const owners = uids(wanted);
  return owners.length === 0 || equal(owners, uids(live)) ? [] : ["metadata.ownerReferences"];
}

/** Paths at which two values differ, in either direction. */
function differences(wanted: Json | undefined, live: Json | undefined, path: Path): string[] {
  if (equal(wanted, live)) return [];
  if (isObject(wanted) && isObject(live)) {
    const keys = [...new Set([...Object.keys(wanted), ...Object.keys(live)])];
    return keys.flatMap((key) => differences(wanted[key], live[key], [...path, key]));
  }
  if (Array.isArray(wanted) && Array.isArray(live) && wanted.length === live.length)
    return wanted.flatMap((one, i) => differences(one, live[i], [...path, i]));
  return [fieldPath(path)];
}

/** Paths at which the live value misses the desired one. */
function missing(wanted: Json | undefined, live: Json | undefined, path: Path): string[] {
  if (isObject(wanted) && isObject(live))
    return Object.keys(wanted).flatMap((key) => missing(wanted[key], live[key], [...path, key]));
  if (Array.isArray(wanted) && Array.isArray(live) && wanted.length === live.length)
    return wanted.flatMap((one, i) => missing(one, live[i], [...path, i]));
  return equal(wanted, live) ? [] : [fieldPath(path)];
}
