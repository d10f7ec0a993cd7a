import { RUNS_WATCHDOG } from "../../core/installation/setting-condition.ts";
import { type JsonObject, stringAt } from "../../core/json.ts";
import { checkSubdomain } from "../../core/kubernetes/names.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import { atLeast } from "../../core/kubernetes/versions.ts";
import type { CompileContext } from "../../core/module/compile.ts";
import type { Access, ManagedObjects } from "../../core/module/module.ts";
import { kindResource } from "../../core/policy/kind.ts";
import { STANDBY, STANDBY_LABEL } from "../../core/registration/webhooks.ts";
import { compile } from "./compile.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "./kinds.ts";
import { COMPILES_FALLBACK } from "./settings.ts";

const GROUP = "admissionregistration.k8s.io";

/** MutatingAdmissionPolicies are on, and v1, since this release. */
const POLICIES_SINCE = 36;

const WHEN = [COMPILES_FALLBACK, ...RUNS_WATCHDOG];

/** The API server lets an account write a policy with parameters only if the account may read all of their kind. */
export const STANDBY_ACCESS: Access = {
  group: GROUP,
  resource: "mutatingwebhookconfigurations",
  verbs: ["get", "list"],
  why: "write policies that stand in for its webhooks: the label of its own configuration switches them",
  when: WHEN,
};

/**
 * The compiled policies, which place new pods while no replica is ready. At other times their bindings select no
 * parameter, and match nothing. Their names differ from those of `usher compile`, whose objects are always in force.
 */
export const standby: ManagedObjects = {
  standby: true,
  resources: [
    {
      group: GROUP,
      version: "v1",
      resource: "mutatingadmissionpolicies",
      kind: "MutatingAdmissionPolicy",
      scope: "Cluster",
    },
    {
      group: GROUP,
      version: "v1",
      resource: "mutatingadmissionpolicybindings",
      kind: "MutatingAdmissionPolicyBinding",
      scope: "Cluster",
    },
  ],
  why: "place new pods while no replica is ready",
  when: WHEN,
  desired: (view, installation, gates, now) => {
    const version = view.serverVersion?.effective;
    if (version === undefined || !atLeast(version, POLICIES_SINCE)) return [];
    return [clusterPodSchedulingPolicy, podSchedulingPolicy].flatMap((kind) =>
      [...view.list(kindResource(kind))].flatMap((object) => {
        const namespace = namespaceOf(object);
        const ref = { kind: kind.kind, name: nameOf(object), ...(namespace === "" ? {} : { namespace }) };
        const { policy } = kind.prepare(object, ref);
        if (policy === undefined) return [];
        // One at a time: what is left out between policies does not matter here, and costs the square of their number.
        const context: CompileContext<typeof policy> = { policies: [policy], view, installation, gates, now };
        return compile(context)
          .flatMap(({ objects }) => objects.filter(isPlacing).map(onStandby))
          .filter(isNamed);
      }),
    );
  },
};

/** In force only while the mutating webhook configuration is labelled so. */
function onStandby(object: JsonObject): JsonObject {
  const name = nameOf(object).replace(/^usher-placement/, "usher-standby");
  const { spec } = object;
  const switched =
    stringAt(spec, "policyName") === undefined
      ? { paramKind: { apiVersion: `${GROUP}/v1`, kind: "MutatingWebhookConfiguration" } }
      : {
          policyName: name,
          paramRef: {
            selector: { matchLabels: { [STANDBY_LABEL]: STANDBY.active } },
            parameterNotFoundAction: "Allow",
          },
        };
  return { ...object, metadata: { name }, spec: { ...(spec as JsonObject), ...switched } };
}

/** Enforcement is not on standby: a policy that refuses fails closed by default, and another one is not to refuse meanwhile. */
function isPlacing({ kind }: JsonObject): boolean {
  return kind === "MutatingAdmissionPolicy" || kind === "MutatingAdmissionPolicyBinding";
}

function isNamed(object: JsonObject): boolean {
  return checkSubdomain(nameOf(object)) === undefined;
}
