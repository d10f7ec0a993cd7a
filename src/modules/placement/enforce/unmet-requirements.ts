import { canonical, isObject, type Json, type JsonObject, listAt, own } from "../../../core/json.ts";
import { covers } from "../../../core/kubernetes/tolerations.ts";
import type { Path } from "../../../core/path.ts";
import { shallow } from "../../../core/provenance/origin.ts";
import type { Criteria } from "../criteria/criteria.ts";
import { hasAllOf, impliesTerms, pinsLabel } from "../criteria/node-terms/implies.ts";
import { STEPS_TO_TELL, valuesIn, WorkBudget } from "../merge/work-budget.ts";

/** Something that a policy demands and a pod's spec has not. */
export interface UnmetRequirement {
  /** From the pod's spec. */
  readonly path: Path;
  /** What is wanted there, in a few words. */
  readonly wants: string;
}

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const NAMES = ["nodeName", "schedulerName", "priorityClassName", "runtimeClassName"] as const;

/** Longer lists are compared one by one, as far as there is room for it. */
const MOST_COMPARED = 1_024;

/** To compare an element with another each of its items may be looked for among several. */
const STEPS_OF_LOOK = 8;

/**
 * What of a policy's demands a pod's spec does not meet, judged by what it means: a stronger requirement meets a weaker one, a
 * wider toleration a narrower one. Preferences are no demands. Where that is more work than is done for one object, what was not looked at
 * is lacking.
 */
export function unmetRequirements(
  criteria: Criteria,
  spec: JsonObject | undefined,
  effort = new WorkBudget(),
): UnmetRequirement[] {
  const found: UnmetRequirement[] = [];
  const selector = own(spec, "nodeSelector");
  const nodeSelector = isObject(selector) ? selector : {};
  const affinity = own(spec, "affinity");
  const required = own(own(affinity, "nodeAffinity"), REQUIRED);
  const terms = isObject(required) ? listAt(required, "nodeSelectorTerms") : undefined;
  for (const [key, value] of criteria.nodeSelector) {
    if (own(nodeSelector, key) === value || pinsLabel(terms, key, value, effort)) continue;
    found.push({ path: ["nodeSelector", key], wants: `${key}=${value}` });
  }
  for (const field of NAMES) {
    const wanted = criteria[field];
    if (wanted !== undefined && own(spec, field) !== wanted) found.push({ path: [field], wants: wanted });
  }
  if (
    criteria.requiredNodeTerms.length > 0 &&
    !impliesTerms(nodeSelector, terms, criteria.requiredNodeTerms, effort)
  )
    found.push({
      path: ["affinity", "nodeAffinity", REQUIRED],
      wants: "the policy's required node affinity",
    });
  for (const [part, wanted] of [
    ["podAffinity", criteria.requiredPodTerms],
    ["podAntiAffinity", criteria.requiredAntiTerms],
  ] as const)
    addMissing(
      found,
      ["affinity", part, REQUIRED],
      listAt(affinity, part, REQUIRED),
      wanted,
      hasAllOf,
      "topologyKey",
      effort,
    );
  addMissing(
    found,
    ["tolerations"],
    listAt(spec, "tolerations"),
    criteria.tolerations,
    covers,
    "key",
    effort,
  );
  const strict = criteria.topologySpreadConstraints.filter(isStrict);
  const spread = ["topologySpreadConstraints"];
  addMissing(
    found,
    spread,
    listAt(spec, "topologySpreadConstraints"),
    strict,
    hasAllOf,
    "topologyKey",
    effort,
  );
  addMissing(
    found,
    ["schedulingGates"],
    listAt(spec, "schedulingGates"),
    criteria.schedulingGates,
    hasAllOf,
    "name",
    effort,
  );
  return found;
}

function isStrict(constraint: JsonObject): boolean {
  return own(constraint, "whenUnsatisfiable") === "DoNotSchedule";
}

/** True of a policy whose criteria are preferences, if anything. */
export function requiresNothing(criteria: Criteria): boolean {
  return unmetRequirements(criteria, undefined).length === 0;
}

function addMissing(
  found: UnmetRequirement[],
  path: Path,
  given: readonly Json[],
  wanted: readonly JsonObject[],
  meets: (given: Json, wanted: Json) => boolean,
  name: string,
  effort: WorkBudget,
): void {
  if (wanted.length === 0) return;
  // Nearly always what is wanted is there just as the policy wrote it, for usher has put it there.
  const plain = given.length > MOST_COMPARED ? [] : given.filter(shallow);
  for (const one of plain) effort.spend(valuesIn(one));
  const texts = new Set(plain.map(canonical));
  for (const one of wanted) {
    const steps = STEPS_OF_LOOK * valuesIn(one);
    if (effort.spend(STEPS_TO_TELL + steps) && texts.has(canonical(one))) continue;
    if (given.some((other) => effort.spend(steps) && meets(other, one))) continue;
    const called = own(one, name);
    const which = typeof called === "string" && called !== "" ? ` with ${name} ${called}` : "";
    found.push({ path, wants: `the policy's entry${which}` });
  }
}
