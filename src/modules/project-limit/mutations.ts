import {
  eachOf,
  ignore,
  type Mutations,
  membersOf,
  policyMutations,
  raise,
  remove,
  removeAll,
  removeParts,
  restoreDefault,
  type Weakening,
  weaker,
} from "../../core/policy/mutants.ts";
import { projectRequestLimit } from "./kinds.ts";
import { OPERAND_FIELDS } from "./policy/operand-schema.ts";

const operand = ignore("says how the operand runs, not whom it limits");

const FIELDS: Readonly<Record<string, Weakening>> = {
  limits: eachOf({ selector: removeParts, groups: removeAll, users: removeAll, maxProjects: raise }),
  maxProjectsForSystemUsers: raise,
  maxProjectsForServiceAccounts: raise,
  serviceAccountsPer: weaker("Namespace", "Account"),
  count: ignore("differs only for concurrent requests"),
  failurePolicy: ignore("counts only while usher does not answer"),
  timeoutSeconds: ignore("counts only while usher does not answer"),
  namespaces: remove,
  exempt: membersOf({ users: removeParts, groups: removeParts }),
  trustedAnnotators: removeParts,
  extensions: restoreDefault("Enabled"),
  ...Object.fromEntries(Object.keys(OPERAND_FIELDS).map((field) => [field, operand])),
};

/** Classes of users and their limits. */
export const MUTATIONS: readonly Mutations[] = [policyMutations(projectRequestLimit, FIELDS)];
