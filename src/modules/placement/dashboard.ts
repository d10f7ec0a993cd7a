import { Facts } from "../../core/decision/need.ts";
import { resourceName } from "../../core/decision/request.ts";
import { evaluateHooks } from "../../core/evaluate/evaluate-hooks.ts";
import { requestFor } from "../../core/foresight/stored-workloads.ts";
import { at, equal, isObject, type JsonObject, textOf } from "../../core/json.ts";
import {
  annotationsOf,
  controllerOf,
  groupVersionOf,
  labelsOf,
  NAMESPACE_NAME,
  namespaceOf,
} from "../../core/kubernetes/object.ts";
import { describeSelector, matches, requiredLabels } from "../../core/kubernetes/selectors/label-selector.ts";
import { POD } from "../../core/kubernetes/workloads.ts";
import type { Assembly, StandingPolicy } from "../../core/module/assembly.ts";
import type { DashboardParts, Lens, LensAnswer, PolicyConflict } from "../../core/module/dashboard.ts";
import { policyKey } from "../../core/policy/policy-ref.ts";
import { PROVENANCE, provenanceOf } from "../../core/provenance/annotation.ts";
import { CRITERIA_FIELDS } from "./criteria/criteria.ts";
import type { Criteria } from "./criteria/criterion.ts";
import { declaration } from "./declaration.ts";
import { comparePolicies, type PlacementPolicy } from "./policy/policy.ts";

/** The policies that placed a pod: by its own record, else by that of the workload whose template it is of. */
function placedBy(pod: JsonObject, { view, installation }: Assembly): string[] {
  let object: JsonObject | undefined = pod;
  // Deployment, ReplicaSet, pod: no chain of controllers that makes pods is longer than this.
  for (let steps = 0; object !== undefined && steps < 4; steps++) {
    const found = provenanceOf(object).filter(({ module }) => module === declaration.name);
    if (found.length > 0) return found.map(({ policy }) => policy);
    const controller = controllerOf(object);
    if (controller === undefined) return [];
    const { group } = groupVersionOf(controller.apiVersion);
    const kind = installation.workloads.byKind(group, controller.kind);
    object = kind && view.get(resourceName(kind), namespaceOf(object), controller.name);
  }
  return [];
}

/** Policies by key, in the order of their precedence. */
function policiesByKey(assembly: Assembly): Map<string, PlacementPolicy> {
  const all = [...assembly.policies(declaration.name)].flatMap(({ policy }) =>
    policy === undefined ? [] : [policy as PlacementPolicy],
  );
  return new Map(all.sort(comparePolicies).map((policy) => [policyKey(policy.ref), policy]));
}

const NOT_PLACED: LensAnswer = {
  key: "none",
  title: "no policy",
  tone: "none",
  why: "No placement policy has changed it.",
  policies: [],
};

const byPolicy: Lens = {
  name: "policy",
  title: "Placed by policy",
  summary: "The placement policy that put the pod where it is; of several the one that counts first.",
  prepare: (assembly) => {
    const known = [...policiesByKey(assembly).keys()];
    const rank = (key: string) => (known.includes(key) ? known.indexOf(key) : known.length);
    return {
      of: (pod) => {
        const policies = placedBy(pod, assembly).sort((a, b) => rank(a) - rank(b));
        const [first] = policies;
        if (first === undefined) return NOT_PLACED;
        const gone = rank(first) === known.length;
        const title = shortName(first);
        return {
          key: first,
          title: gone ? `${title} (gone)` : title,
          tone: "plain",
          why: `Placed by ${policies.map(shortName).join(", then ")}${gone ? ", which no longer exists" : ""}.`,
          policies,
        };
      },
    };
  },
};

function shortName(key: string): string {
  return key.slice(key.indexOf("/") + 1);
}

/** The scheduler and the kubelet set it as well. */
const COMPARED = CRITERIA_FIELDS.filter((field) => field !== "nodeName");

const byDrift: Lens = {
  name: "drift",
  title: "Fits today's policies",
  summary: "Whether the pod has what the placement policies of today would give it.",
  prepare: (assembly, now) => ({
    of: (pod) => {
      const request = requestFor(pod, POD, { priorityClasses: [] });
      const hooks = assembly.hooks.filter(({ module }) => module === declaration.name);
      const evaluation = evaluateHooks({ assembly, phase: "mutate", hooks, request, now }, new Facts());
      if ("needs" in evaluation)
        return answer("unknown", "unknown", "none", "It needs what is not known here.");
      const today = evaluation.draft.object;
      const stored = requestFor(withoutRecord(pod), POD, { priorityClasses: [] }).object;
      const differs = COMPARED.filter(
        (field) => !equal(asStored(at(today, "spec", field)), asStored(at(stored, "spec", field))),
      );
      const wanting = evaluation.findings.flatMap(({ policy, outcome }) =>
        policy !== undefined && (outcome === "applied" || outcome === "same" || outcome === "skipped")
          ? [policyKey(policy)]
          : [],
      );
      const policies = [...new Set([...wanting, ...(differs.length > 0 ? placedBy(pod, assembly) : [])])];
      if (differs.length > 0)
        return answer(
          "drifted",
          "drifted",
          "warning",
          `A new pod would have another ${differs.join(", ")}. Recreate the pod, or reapply the policies to its workload.`,
          policies,
        );
      return policies.length === 0
        ? answer("none", "no policy", "none", "No placement policy selects it.")
        : answer("fits", "fits", "good", "It has what the policies of today would give it.", policies);
    },
  }),
};

function answer(
  key: string,
  title: string,
  tone: LensAnswer["tone"],
  why: string,
  policies: readonly string[] = [],
): LensAnswer {
  return { key, title, tone, why, policies };
}

function withoutRecord(pod: JsonObject): JsonObject {
  const metadata = isObject(pod["metadata"]) ? pod["metadata"] : {};
  const { [PROVENANCE]: _record, ...annotations } = annotationsOf(pod) ?? {};
  return { ...pod, metadata: { ...metadata, annotations } };
}

/** An absent field and an empty one are the same to the scheduler. */
function asStored(value: ReturnType<typeof at>): ReturnType<typeof at> {
  const empty = typeof value === "object" && value !== null && Object.keys(value).length === 0;
  return empty || value === null ? undefined : value;
}

/** What a policy sets, for people: `nodeSelector pool=etcd`. */
function changesOf(criteria: Criteria, spec: JsonObject): string[] {
  return criteria.flatMap(({ criterion }) => {
    const value = at(spec, ...criterion.path);
    if (criterion.name === "nodeSelector" && isObject(value))
      return Object.entries(value).map(([key, one]) => `nodeSelector ${key}=${textOf(one)}`);
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return [`${criterion.text} ${text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}`];
  });
}

const SHOWN = 120;

function refusesOf({ enforcement, onConflict, failure, targets }: PlacementPolicy): string[] {
  const what = targets === "Templates" ? "workloads" : targets === "Pods" ? "pods" : "pods and workloads";
  return [
    ...(enforcement === "Refuse" ? [`${what} that do not meet it`] : []),
    ...(enforcement === "Warn" ? [`nothing; warns about ${what} that do not meet it`] : []),
    ...(onConflict === "Refuse" ? [`${what} that have another value`] : []),
    ...(failure === "Fail" ? [`${what} while the policy is invalid or usher can't judge`] : []),
  ];
}

/** Places where policies want single values. A list takes elements of every policy. */
function wantedBy(
  { criteria }: PlacementPolicy,
  spec: JsonObject,
): (readonly [place: string, value: string])[] {
  return criteria.flatMap(({ criterion }): (readonly [string, string])[] => {
    const value = at(spec, ...criterion.path);
    if (criterion.name === "nodeSelector" && isObject(value))
      return Object.entries(value).map(([key, one]) => [`nodeSelector ${key}`, textOf(one)] as const);
    return typeof value === "string" ? [[criterion.rule, value]] : [];
  });
}

/** More would fill the page; the first are the ones that win. */
const MOST_CONFLICTS = 20;

/** Policies that want different values at one place of the same pods, as far as selectors and the namespaces that exist tell. */
function conflictsOf(
  policies: ReadonlyMap<string, PlacementPolicy>,
  specOf: (policy: PlacementPolicy) => JsonObject,
  namespaces: readonly JsonObject[],
): Map<string, PolicyConflict[]> {
  const byPlace = new Map<
    string,
    { readonly key: string; readonly policy: PlacementPolicy; value: string }[]
  >();
  for (const [key, policy] of policies)
    for (const [place, value] of wantedBy(policy, specOf(policy)))
      byPlace.set(place, [...(byPlace.get(place) ?? []), { key, policy, value }]);
  const found = new Map<string, PolicyConflict[]>();
  const add = (key: string, conflict: PolicyConflict) => {
    const known = found.get(key) ?? [];
    found.set(key, known);
    if (known.length < MOST_CONFLICTS) known.push(conflict);
  };
  for (const [place, wanted] of byPlace)
    for (const [i, first] of wanted.entries())
      for (const second of wanted.slice(i + 1)) {
        if (first.value === second.value || !mayMeet(first.policy, second.policy, namespaces)) continue;
        const why = precedence(first.policy, second.policy);
        const about = `${place}: ${first.value} by ${shortName(first.key)}, ${second.value} by ${shortName(second.key)}`;
        add(first.key, { about, with: second.key, winner: first.key, why });
        add(second.key, { about, with: first.key, winner: first.key, why });
      }
  return found;
}

/** Whether one selects all pods of the other in some namespace: policies that only might meet are not worth a word. */
function mayMeet(a: PlacementPolicy, b: PlacementPolicy, namespaces: readonly JsonObject[]): boolean {
  if (!covers(a, b) && !covers(b, a)) return false;
  return namespaces.some((namespace) => {
    const labels = { ...labelsOf(namespace), [NAMESPACE_NAME]: textOf(at(namespace, "metadata", "name")) };
    return [a, b].every(({ namespaceSelector: one }) => one !== undefined && matches(one, labels));
  });
}

/** Whether whatever the second selects is selected by the first too. */
function covers({ podSelector: wide }: PlacementPolicy, { podSelector: narrow }: PlacementPolicy): boolean {
  if (wide === undefined || narrow === undefined || narrow.kind === "nothing") return false;
  if (wide.kind !== "requirements") return wide.kind === "everything";
  const needs = new Map(requiredLabels(narrow).map(({ key, values }) => [key, values]));
  return wide.requirements.every(
    ({ key, operator, values }) =>
      (operator === "Exists" && needs.has(key)) ||
      (operator === "In" && needs.get(key)?.every((one) => [...values].includes(one)) === true),
  );
}

/** Why the first wins: the order of `comparePolicies`. */
function precedence(winner: PlacementPolicy, other: PlacementPolicy): string {
  if (winner.priority !== other.priority)
    return `priority ${winner.priority} is higher than ${other.priority}`;
  if ((winner.ref.namespace === undefined) !== (other.ref.namespace === undefined))
    return "a policy of the cluster counts before one of a namespace";
  return `with the same priority the name decides: ${winner.ref.name} comes before ${other.ref.name}`;
}

export const dashboard: DashboardParts = {
  lenses: [byPolicy, byDrift],
  summarize: (assembly) => {
    const policies = policiesByKey(assembly);
    const resources = new Map(
      assembly.modules
        .flatMap(({ kinds }) => kinds)
        .map((kind) => [kind.kind, `${kind.plural}.${kind.group}`]),
    );
    const specOf = ({ ref }: { readonly ref: StandingPolicy["ref"] }) => {
      const spec = at(
        assembly.view.get(resources.get(ref.kind) ?? "", ref.namespace ?? "", ref.name),
        "spec",
      );
      return isObject(spec) ? spec : {};
    };
    const conflicts = conflictsOf(policies, specOf, [...assembly.view.list("namespaces")]);
    return ({ policy, ref }) => {
      if (policy === undefined) return { selects: ["none"], changes: [], refuses: [] };
      const { podSelector, namespaceSelector, criteria } = policy as PlacementPolicy;
      return {
        selects: [
          `pods: ${describeSelector(podSelector)}`,
          ref.namespace === undefined
            ? `namespaces: ${describeSelector(namespaceSelector)}`
            : `namespace: ${ref.namespace}`,
        ],
        changes: changesOf(criteria, specOf({ ref })),
        refuses: refusesOf(policy as PlacementPolicy),
        conflicts: conflicts.get(policyKey(ref)) ?? [],
      };
    };
  },
};
