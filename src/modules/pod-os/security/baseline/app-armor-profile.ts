import type { Json, JsonObject } from "../../../../core/json.ts";
import { goQuote, joinQuote, plural, sortedSet } from "../../go-text.ts";
import { inContexts } from "../cel.ts";
import type { Check, Failure } from "../check.ts";
import { type CheckedPod, isSet, objectOf, shown } from "../checked-pod.ts";
import { causesAt, containersWhere, contextPaths, removeProfiles, setters } from "../containers.ts";

const PREFIX = "container.apparmor.security.beta.kubernetes.io/";

const IN_CEL = inContexts(
  (context) => `${context}.?appArmorProfile.?type.orValue("Localhost") in ["RuntimeDefault", "Localhost"]`,
);
const ANNOTATIONS_IN_CEL = `object.metadata.?annotations.orValue({}).all(k, !k.startsWith("${PREFIX}") || object.metadata.annotations[k] in ["", "runtime/default"] || object.metadata.annotations[k].startsWith("localhost/"))`;

/**
 * AppArmor profiles may not be lifted.
 *
 * Fields:     spec.securityContext.appArmorProfile.type,
 *             spec.{containers,initContainers,ephemeralContainers}[*].securityContext.appArmorProfile.type
 * Allowed:    no profile, RuntimeDefault, Localhost
 * Annotation: container.apparmor.security.beta.kubernetes.io/*, whether or not the container exists
 * Allowed:    absent, empty, runtime/default, localhost/*
 * Fix:        removes the profile or the annotation.
 */
export const appArmorProfile: Check = {
  id: "appArmorProfile",
  level: "baseline",
  os: "linux",
  fix: removeProfiles,
  variants: [
    {
      since: 0,
      fields: [
        ...(["pod", "container"] as const).map((scope) => ({
          scope,
          path: ["securityContext", "appArmorProfile"],
          allowed: [null, { type: "RuntimeDefault" }, { type: "Localhost", localhostProfile: "p" }],
          forbidden: [{ type: "Unconfined" }],
        })),
        {
          scope: "annotation",
          path: [`${PREFIX}*`],
          allowed: [null, "", "runtime/default", "localhost/p"],
          forbidden: ["unconfined"],
        },
      ],
      cel: { ...IN_CEL, pod: `${IN_CEL.pod} && ${ANNOTATIONS_IN_CEL}` },
      evaluate: evaluateAppArmorProfiles,
    },
  ],
};

function isForbidden(profile: Json | undefined): boolean {
  if (!isSet(profile)) return false;
  const type = objectOf(profile)["type"];
  return type !== "RuntimeDefault" && type !== "Localhost";
}

const breaks = (context: JsonObject): boolean => isForbidden(context["appArmorProfile"]);

function forbiddenAnnotations(pod: CheckedPod): string[] | undefined {
  const annotations = objectOf(pod.metadata["annotations"]);
  let keys: string[] | undefined;
  for (const key in annotations) {
    if (!key.startsWith(PREFIX)) continue;
    const value = annotations[key];
    if (!isSet(value) || value === "" || value === "runtime/default") continue;
    if (typeof value === "string" && value.startsWith("localhost/")) continue;
    if (keys === undefined) keys = [key];
    else keys.push(key);
  }
  return keys;
}

function evaluateAppArmorProfiles(pod: CheckedPod, mostCauses: number): Failure | undefined {
  const podBreaks = breaks(pod.context);
  const containers = containersWhere(pod, breaks);
  const keys = forbiddenAnnotations(pod);
  if (!podBreaks && containers === undefined && keys === undefined) return undefined;
  const contexts = [...(podBreaks ? [pod.context] : []), ...(containers ?? []).map((i) => pod.contexts[i])];
  const annotations = objectOf(pod.metadata["annotations"]);
  const types = sortedSet(contexts.values().map((one) => shown(objectOf(one?.["appArmorProfile"])["type"])));
  const values = [
    ...types,
    ...sortedSet((keys ?? []).map((key) => `${key}=${goQuote(shown(annotations[key]))}`)),
  ];
  const who = [setters(pod, podBreaks, containers)].filter((text) => text !== "");
  if (keys !== undefined) who.push(plural("annotation", "annotations", keys.length));
  return {
    reason: plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.length),
    detail: `${who.join(" and ")} must not set AppArmor profile type to ${joinQuote(values)}`,
    causes: [
      ...causesAt(
        contextPaths(pod, podBreaks, containers, mostCauses, "appArmorProfile", "type"),
        "must be RuntimeDefault or Localhost, or the profile absent",
      ),
      ...causesAt(
        (keys ?? []).slice(0, mostCauses).map((key) => ["metadata", "annotations", key]),
        "must be runtime/default or start with localhost/",
      ),
    ],
  };
}
