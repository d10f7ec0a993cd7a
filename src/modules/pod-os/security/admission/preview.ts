import type { Fact, Need } from "../../../../core/decision/need.ts";
import { isObject, type JsonObject } from "../../../../core/json.ts";
import { controllerOf, nameOf } from "../../../../core/kubernetes/object.ts";
import type { Context } from "../../../../core/module/module.ts";
import { byCodePoint } from "../../go-text.ts";
import type { PodOSSettings } from "../../settings.ts";
import type { Exceptions } from "../exceptions/exceptions.ts";
import type { LevelVersion } from "../policy.ts";
import { exemptPod } from "./exemptions.ts";
import { policyText } from "./namespace-policy.ts";
import { violationsOf } from "./verdict.ts";
import { waive } from "./waivers.ts";

/** As many as upstream checks. */
const MOST_PODS = 3_000;
/** This many pods are read to choose from: more than a namespace has in the largest clusters that Kubernetes is tested with. */
const MOST_READ = 20_000;
const TIMEOUT_MS = 1_000;

/** All pods of the namespace, within a second and half of the time that is left. */
export function podsNeed(namespace: string): Need {
  return {
    list: { resource: "pods", namespace },
    limit: MOST_READ,
    share: 0.5,
    timeoutMs: TIMEOUT_MS,
  };
}

/** The warnings about existing pods that a new enforce policy would refuse, in upstream's wording and order. */
export function previewOf(
  context: Context,
  exceptions: Exceptions,
  settings: PodOSSettings["podSecurity"],
  enforce: LevelVersion,
  fact: Fact,
): string[] {
  if (!("found" in fact) || !Array.isArray(fact.found))
    return ["failed to list pods while checking new PodSecurity enforce level"];
  const { request, now } = context;
  const listed: readonly JsonObject[] = fact.found.filter(isObject);
  const judged = listed.filter((pod) => exemptPod(specOf(pod), settings.configuration) === undefined);
  const pods = prioritised(judged).slice(0, MOST_PODS);
  const total = Math.max(fact.total ?? 0, listed.length) - (listed.length - judged.length);
  const found = new Map<string, { first: string; count: number }>();
  for (const pod of pods) {
    const spec = specOf(pod);
    const metadata = isObject(pod["metadata"]) ? pod["metadata"] : {};
    const { violations } = waive(
      violationsOf(context, settings, enforce, { metadata, spec }),
      spec,
      exceptions.for(request.namespace, metadata, spec, now),
      (part, check) => violationsOf(context, settings, enforce, { metadata, spec: part }, check),
    );
    if (violations.length === 0) continue;
    const reasons = violations.map(({ reason }) => reason).join(", ");
    const name = nameOf(pod);
    const known = found.get(reasons);
    if (known === undefined) found.set(reasons, { first: name, count: 1 });
    else {
      known.count++;
      if (byCodePoint(name, known.first) < 0) known.first = name;
    }
  }
  const lines = [...found].map(([reasons, { first, count }]) => `${first}${others(count - 1)}: ${reasons}`);
  const checked =
    pods.length < total || !fact.complete
      ? [
          `new PodSecurity enforce level only checked against the first ${pods.length} of ${total} existing pods`,
        ]
      : [];
  if (lines.length === 0) return checked;
  const title = `existing pods in namespace ${JSON.stringify(request.name)} violate the new PodSecurity enforce level "${policyText(enforce)}"`;
  return [...checked, title, ...lines.sort(byCodePoint)];
}

function others(count: number): string {
  if (count === 0) return "";
  return count === 1 ? " (and 1 other pod)" : ` (and ${count} other pods)`;
}

/** One pod per controller and all without one come first: further replicas add no information. */
function prioritised(pods: readonly JsonObject[]): JsonObject[] {
  const seen = new Set<string>();
  const first: JsonObject[] = [];
  const further: JsonObject[] = [];
  for (const pod of pods) {
    const uid = controllerOf(pod)?.uid;
    if (uid !== undefined && seen.has(uid)) further.push(pod);
    else first.push(pod);
    if (uid !== undefined) seen.add(uid);
  }
  return [...first, ...further];
}

function specOf(pod: JsonObject): JsonObject {
  return isObject(pod["spec"]) ? pod["spec"] : {};
}
