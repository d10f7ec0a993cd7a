import type { DeclaredRole, Right } from "../../../core/module/rights.ts";
import { named } from "../../../core/registration/module-rights.ts";
import { projectUsage } from "../ledger/project-usage.ts";
import { OPERAND } from "../operand-names.ts";

const READ = ["get", "list", "watch"];

/** The requests of an aggregated API server for every call: whether the identity may make it. */
const REVIEW_ACCESS: Right = {
  group: "authorization.k8s.io",
  resources: ["subjectaccessreviews"],
  verbs: ["create"],
  why: "authorize requests of the aggregated API",
  when: [],
};

const SEE_TRUST = { verbs: ["get"], why: "serve a new certificate once API servers trust it", when: [] };
const SEE_WEBHOOK: Right = {
  group: "admissionregistration.k8s.io",
  resources: ["validatingwebhookconfigurations"],
  ...SEE_TRUST,
};
const SEE_API_SERVICE: Right = {
  group: "apiregistration.k8s.io",
  resources: ["apiservices"],
  ...SEE_TRUST,
};

/** The operand's permissions: read, and write ledgers and its Lease. */
export function operandRoles(aggregated: boolean): DeclaredRole[] {
  return [
    {
      kind: "ClusterRole",
      name: OPERAND.name,
      own: true,
      account: OPERAND.name,
      rights: [
        { group: "", resources: ["namespaces"], verbs: READ, why: "count the projects of a user", when: [] },
        {
          group: "user.openshift.io",
          resources: ["users"],
          verbs: ["get"],
          why: "read the labels of the requesting user",
          when: [],
        },
        {
          group: projectUsage.group,
          resources: [projectUsage.plural],
          verbs: [...READ, ...projectUsage.verbs],
          why: "keep the ledgers",
          when: [],
        },
        ...named(SEE_WEBHOOK, [OPERAND.webhook]),
        ...(aggregated ? [REVIEW_ACCESS, ...named(SEE_API_SERVICE, [OPERAND.apiService])] : []),
      ],
    },
    {
      kind: "Role",
      name: OPERAND.name,
      own: true,
      account: OPERAND.name,
      rights: [
        ...named(
          {
            group: "coordination.k8s.io",
            resources: ["leases"],
            verbs: ["get", "update"],
            why: "elect the pod that frees ledgers of what is not there",
            when: [],
          },
          [OPERAND.name],
        ),
        ...named(
          {
            group: "",
            resources: ["secrets"],
            verbs: ["get"],
            why: "know API servers by the webhook's path",
            when: [],
          },
          [OPERAND.pathsSecret],
        ),
      ],
    },
  ];
}
