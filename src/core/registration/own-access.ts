import { MANAGES_WEBHOOKS, OWN_CERTIFICATES } from "../installation/setting-condition.ts";
import type { Module } from "../module/module.ts";
import type { DeclaredRole, Right } from "../module/rights.ts";
import { KEEP, named, registrationRights, WEBHOOKS } from "./module-rights.ts";
import { OWN_NAMES } from "./names.ts";
import { watchdogRoles } from "./pods/watchdog.ts";

/**
 * Usher's permissions on its own installation, beside reading and evaluating. Everything with a fixed name is granted
 * by that name. Usher creates with server-side apply: the API server checks that as `create` with the name, while a
 * POST has no name that a rule could match. It can't change its own roles: the anchor has no binding. An attacker that
 * controls usher still has its webhooks, which may be registered for everything: protect its namespace like the control
 * plane's.
 */
export function ownRoles(modules: readonly Module[]): DeclaredRole[] {
  return [
    {
      kind: "ClusterRole",
      name: OWN_NAMES.registration,
      own: true,
      rights: [...REGISTRATION, ...modules.flatMap(registrationRights)],
    },
    { kind: "Role", name: OWN_NAMES.account, own: true, rights: NAMESPACE },
    ...watchdogRoles(),
  ];
}

const OWN_WEBHOOKS = {
  group: "admissionregistration.k8s.io",
  resources: WEBHOOKS,
  names: [OWN_NAMES.webhooks],
};

const REGISTRATION: readonly Right[] = [
  { ...OWN_WEBHOOKS, verbs: ["get"], why: "see whether its webhooks are as they should be", when: [] },
  {
    ...OWN_WEBHOOKS,
    // If the API server enforces it, as OpenShift's does, only a subject that may delete an object may change its
    // owners.
    verbs: ["create", "patch", "delete"],
    why: "register and repair its webhooks, and set their owner",
    when: [MANAGES_WEBHOOKS],
  },
  {
    group: "rbac.authorization.k8s.io",
    resources: ["clusterroles"],
    names: [OWN_NAMES.anchor],
    verbs: ["get", "patch", "delete"],
    why: "make an object that every removal deletes the owner of the objects that it writes; the object grants nothing",
    when: [],
  },
  {
    group: "",
    resources: ["namespaces"],
    names: "namespace",
    verbs: ["get"],
    why: "make its namespace the owner of that object",
    when: [],
  },
];

const NAMESPACE: readonly Right[] = [
  ...named(
    {
      group: "",
      resources: ["secrets"],
      verbs: [...KEEP, "update"],
      why: "keep its certificate and path tokens",
      when: [OWN_CERTIFICATES],
    },
    [OWN_NAMES.certificates],
  ),
  {
    group: "",
    resources: ["configmaps"],
    verbs: ["get", "list", "create", "patch", "delete"],
    why: "publish the tallies of each replica under its own name, and collect them",
    when: [],
  },
  ...named(
    {
      group: "coordination.k8s.io",
      resources: ["leases"],
      verbs: ["get", "update"],
      why: "elect a leader",
      when: [],
    },
    [OWN_NAMES.lease],
  ),
  { group: "coordination.k8s.io", resources: ["leases"], verbs: ["create"], why: "elect a leader", when: [] },
  {
    group: "discovery.k8s.io",
    resources: ["endpointslices"],
    verbs: ["list"],
    why: "see that a replica is ready before webhooks are registered, and whether calls may have failed",
    when: [],
  },
  {
    group: "apps",
    resources: ["deployments"],
    names: [OWN_NAMES.deployment],
    verbs: ["get"],
    why: "make it the owner of its certificate and Lease, and record an event about it when webhooks that were opened are closed",
    when: [],
  },
];
