import { Gates } from "../../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../../src/core/installation/installation.ts";
import { type Json, listAt } from "../../../src/core/json.ts";
import { type DeclaredRole, grantedRights, ruleOf } from "../../../src/core/module/rights.ts";
import type { ClusterAccess } from "./access.ts";

/** The permissions of a service account in a namespace, beyond those of every account, as `verb resource.group name`. */
export async function rightsOf(
  cluster: ClusterAccess,
  account: { readonly namespace: string; readonly name: string },
  namespace = account.namespace,
): Promise<string[]> {
  const allowed = async (name: string) => {
    const all = `system:serviceaccounts:${account.namespace}`;
    const as = {
      user: `system:serviceaccount:${account.namespace}:${name}`,
      groups: ["system:serviceaccounts", all, "system:authenticated"],
    };
    const kind = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview" };
    const path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    const { body } = await cluster.request("POST", path, { ...kind, spec: { namespace } }, as);
    return listAt(body, "status", "resourceRules").flatMap(spelled);
  };
  const everyone = await allowed("nothing-is-bound-to-it");
  return [...new Set(await allowed(account.name))].filter((right) => !everyone.includes(right)).sort();
}

/** The permissions that roles declare, in the same form. */
export function declaredRights(roles: readonly DeclaredRole[]): string[] {
  const declared = { installation: DEFAULT_INSTALLATION, gates: new Gates([]) };
  const rules = roles.flatMap(({ rights }) => grantedRights(rights, declared).map(ruleOf));
  return [...new Set(rules.flatMap(spelled))].sort();
}

/** One string for each verb, resource and name of a rule. */
function spelled(rule: Json): string[] {
  const list = (field: string) => listAt(rule, field).map(String);
  const names = list("resourceNames");
  return list("apiGroups").flatMap((group) =>
    list("resources").flatMap((resource) =>
      list("verbs").flatMap((verb) => {
        const what = `${verb} ${group === "" ? resource : `${resource}.${group}`}`;
        return names.length === 0 ? [what] : names.map((one) => `${what} ${one}`);
      }),
    ),
  );
}
