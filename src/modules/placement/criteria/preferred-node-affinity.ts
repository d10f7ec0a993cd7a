import { canonical } from "../../../core/json.ts";
import { nodeAffinity } from "../../../core/kubernetes/schemas.ts";
import { checkPreferredNodeTerm, PREFERRED } from "./check-elements.ts";
import { MUTABLE_WHILE_GATED } from "./criterion.ts";
import { listCriterion } from "./list-criterion.ts";
import { describeWeighted } from "./pod-affinity.ts";

/**
 * Preferred node affinity
 *
 * Field:    spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution
 * Merge:    terms that the pod does not have are appended.
 * Holds:    never restricts; idempotent; order-independent but for the order of terms. Not enforced.
 * Update:   mutable on gated pods, suspended Jobs and in templates.
 */
export const preferredNodeAffinity = listCriterion({
  name: "preferredNodeAffinity",
  path: ["affinity", "nodeAffinity", PREFERRED],
  text: "preferred node affinity",
  schema: nodeAffinity.shape[PREFERRED],
  check: checkPreferredNodeTerm,
  meaning: canonical,
  describe: describeWeighted,
  kubelet: "ignores",
  mutability: MUTABLE_WHILE_GATED,
});
