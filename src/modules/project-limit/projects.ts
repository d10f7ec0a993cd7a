import type { Json, JsonObject } from "../../core/json.ts";
import { stringAt } from "../../core/json.ts";
import { serviceAccountOf } from "../../core/kubernetes/principals.ts";
import { NAMESPACES, type Read } from "../../core/module/module.ts";
import { byText } from "../../core/order.ts";
import type { Index, View } from "../../core/view/view.ts";
import type { LimitSubject } from "./subject.ts";

/** Whose limit a namespace counts for. */
export const REQUESTER = "openshift.io/requester";

/** So that a project can be deleted and created again immediately, without accumulating terminating ones. Fixed, as upstream. */
const FORGIVEN = 2;

export const BY_REQUESTER: Index = {
  name: "requester",
  values: (namespace) => {
    const requester = requesterOf(namespace);
    return requester === undefined ? [] : [requester];
  },
};

const BY_REQUESTER_NAMESPACE: Index = {
  name: "requester-namespace",
  values: (namespace) => {
    const account = serviceAccountOf(requesterOf(namespace) ?? "");
    return account === undefined ? [] : [account.namespace];
  },
};

export const PROJECTS: Read = {
  ...NAMESPACES,
  keep: [
    ["metadata", "annotations", REQUESTER],
    ["status", "phase"],
  ],
  indexes: [BY_REQUESTER, BY_REQUESTER_NAMESPACE],
  why: "count the projects of a user",
};

export function requesterOf(namespace: Json | undefined): string | undefined {
  return stringAt(namespace, "metadata", "annotations", REQUESTER);
}

/** A project that counts, or may count. */
export interface Project {
  readonly name: string;
  /** By its phase, as upstream. */
  readonly terminating: boolean;
}

export interface Usage {
  readonly count: number;
  /** The names of those that count, in order. Of terminating ones the first by name are forgiven. */
  readonly names: readonly string[];
}

/** The namespaces of a subject, as the view has them. */
export function namespacesOf(view: View, subject: LimitSubject): JsonObject[] {
  return "username" in subject
    ? [...view.lookup("namespaces", BY_REQUESTER.name, subject.username)]
    : [...view.lookup("namespaces", BY_REQUESTER_NAMESPACE.name, subject.serviceAccountsOf)];
}

export function projectsOf(view: View, subject: LimitSubject): Project[] {
  return namespacesOf(view, subject).map(toProject);
}

export function toProject(namespace: Json): Project {
  return {
    name: stringAt(namespace, "metadata", "name") ?? "",
    terminating: stringAt(namespace, "status", "phase") === "Terminating",
  };
}

export function usageOf(projects: readonly Project[]): Usage {
  const sorted = [...projects].sort(byText(({ name }) => name));
  let forgiven = 0;
  const names = sorted.filter(({ terminating }) => !terminating || ++forgiven > FORGIVEN);
  return { count: names.length, names: names.map(({ name }) => name) };
}
