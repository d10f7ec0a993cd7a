import { z } from "zod";
import { at, type JsonObject, listAt } from "../../core/json.ts";
import { conditions } from "../../core/policy/condition.ts";
import { type Kind, kindResource, type Sample } from "../../core/policy/kind.ts";
import { refOf } from "../../core/policy/policy-ref.ts";
import type { View } from "../../core/view/view.ts";
import { type ProjectLimits, SINGLETON } from "./policy/policy.ts";
import { checkLimits, ignoredName, prepareLimits } from "./policy/prepare.ts";
import { limitSpec } from "./policy/spec-schema.ts";
import { checkEnforced } from "./usage/enforced.ts";

const count = (text: string) => z.int().min(0).optional().describe(text);
/** SHA-256 in hexadecimal. */
const hash = (text: string) => z.string().max(64).optional().describe(text);

const limitStatus = z.strictObject({
  observedGeneration: z.int().optional().describe("The generation that was last reconciled."),
  users: z
    .strictObject({
      below: count("Users with more than one free place."),
      last: count("Users with one free place."),
      full: count("Users that have as many projects as they may."),
      over: count("Users that have more projects than they may, as after a limit was lowered."),
    })
    .optional()
    .describe("Limited users and service accounts with at least one project, by state."),
  configHash: hash("The hash of the limits that the operand was rolled out with, by the operator."),
  certHash: hash("The hash of the certificate that the operand was rolled out with, by the operator."),
  desired: count("How many pods of the operand there should be, by the operator."),
  ready: count("How many pods of the operand are ready, by the operator."),
  conditions: conditions(
    "Latest observations of the object's state. Valid: whether all of the spec is valid. Ignored: whether the object has no effect, because its name is not cluster, or because the module is off. Enforced: whether any request is limited. UserAPIMissing: whether labels of users can't be read. NamespacesOpen: whether Namespaces are judged by an open webhook only. BestEffort: whether some users' projects are counted without the ledger. Extended: whether answers differ from those of OpenShift 3.11's plugin. By the operator, of its operand: Available: whether the operand is asked. Progressing: whether it is being rolled out. Degraded: whether something keeps it from being as the spec says. CertificatePending: whether it waits for its certificate. NoNodes: whether no node is there for it, so that nothing is registered.",
    { shared: true },
  ),
});

/** Conditions that the operator writes. */
const OPERATORS_CONDITIONS = ["Available", "Progressing", "Degraded", "CertificatePending", "NoNodes"];

/** The operator and usher share one status: the operator's part. */
function operatorsStatus({ configHash, certHash, desired, ready, ...status }: JsonObject): JsonObject {
  const conditions = listAt(status, "conditions").filter((one) =>
    OPERATORS_CONDITIONS.includes(String(at(one, "type"))),
  );
  const fields = Object.entries({ configHash, certHash, desired, ready });
  return { ...Object.fromEntries(fields.filter(([, value]) => value !== undefined)), conditions };
}

function namespaceOf(user: string, number: number): JsonObject {
  const annotations = { "openshift.io/requester": user };
  return { apiVersion: "v1", kind: "Namespace", metadata: { name: `${user}-${number}`, annotations } };
}

const NEXT = { apiVersion: "v1", kind: "Namespace", metadata: { name: "next" } };
const REFUSED_THIRD = "cannot create more than 3 project(s)";

const THREE_EACH: Sample = {
  name: SINGLETON,
  nameIsFixed: true,
  spec: { limits: [{ groups: ["system:authenticated"], maxProjects: 3 }], namespaces: {} },
  objects: [1, 2, 3].map((number) => namespaceOf("alice", number)),
  cases: [
    {
      name: "a user with three namespaces gets no fourth",
      object: NEXT,
      user: "alice",
      expect: { verdict: "deny", codes: ["USHER-Q01"], causes: [{ message: REFUSED_THIRD }] },
    },
    {
      name: "a user with fewer gets one, which has its requester",
      object: NEXT,
      user: "bob",
      expect: { verdict: "patch", fields: { "metadata.annotations[openshift.io/requester]": "bob" } },
    },
  ],
};

export const projectRequestLimit: Kind<ProjectLimits> = {
  group: "operator.project.openshift.io",
  kind: "ProjectRequestLimit",
  plural: "projectrequestlimits",
  singular: "projectrequestlimit",
  scope: "Cluster",
  standing: "resource",
  summary: "limits how many projects each user may have; only the object named cluster counts",
  versions: [
    {
      name: "v1",
      storage: true,
      spec: limitSpec,
      status: limitStatus,
      columns: [
        {
          name: "Full",
          type: "integer",
          jsonPath: ".status.users.full",
          description: "Users that have as many projects as they may.",
        },
        {
          name: "Over",
          type: "integer",
          jsonPath: ".status.users.over",
          description: "Users that have more projects than they may.",
        },
        { name: "Count", type: "string", jsonPath: ".spec.count", priority: 1 },
        {
          name: "Valid",
          type: "string",
          jsonPath: '.status.conditions[?(@.type=="Valid")].status',
          description: "Whether the whole spec is valid.",
        },
        {
          name: "Enforced",
          type: "string",
          jsonPath: '.status.conditions[?(@.type=="Enforced")].status',
          description: "Whether any request is limited.",
        },
        {
          name: "Ignored",
          type: "string",
          jsonPath: '.status.conditions[?(@.type=="Ignored")].status',
          description: "Whether the object has no effect.",
        },
        {
          name: "Available",
          type: "string",
          jsonPath: '.status.conditions[?(@.type=="Available")].status',
          description: "Whether the operator's operand is asked; empty without the operator.",
        },
        { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
      ],
    },
  ],
  check: (object, view) => [...checkLimits(object), ...ignoredName(object), ...checkEnforced(object, view)],
  sample: () => THREE_EACH,
  // The CRD bounds a key, and only usher its prefix.
  refused: { limits: [{ selector: { [`${"a".repeat(254)}/a`]: "" }, maxProjects: 1 }] },
  othersStatus: operatorsStatus,
  prepare: prepareLimits,
};

export const LIMITS = kindResource(projectRequestLimit);

/** The limits that count now. */
export function limitsIn(view: View): ProjectLimits | undefined {
  const object = view.get(LIMITS, "", SINGLETON);
  return object === undefined
    ? undefined
    : projectRequestLimit.prepare(object, refOf(projectRequestLimit, object)).policy;
}
