import type { JsonObject } from "../../json.ts";
import { Gates } from "../../module/gates.ts";
import { DEFAULT_INSTALLATION } from "../../module/installation.ts";
import type { Operator } from "../../module/operator.ts";
import { type DeclaredRole, grantedRights, ruleOf } from "../rights.ts";
import { CONTAINER_SECURITY, fieldVariable, POD_SECURITY, PRIORITY_CLASS } from "./restricted-pod.ts";

export interface OperatorImages {
  readonly operator: string;
  /** What the operator runs the operand with. */
  readonly operand: string;
}

/** The Deployment of an operator, apart from what installs it. */
export function operatorDeployment(
  module: string,
  { name, namespace, imageVariable }: Operator,
  images: OperatorImages,
): JsonObject {
  const labels = { "app.kubernetes.io/name": name };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace, labels },
    spec: {
      // One is enough: the operand works without it. A second one waits while they are replaced.
      replicas: 1,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: name,
          priorityClassName: PRIORITY_CLASS,
          securityContext: POD_SECURITY,
          containers: [
            {
              name,
              image: images.operator,
              args: ["operator", module],
              env: [
                fieldVariable("POD_NAME", "metadata.name"),
                fieldVariable("POD_NAMESPACE", "metadata.namespace"),
                { name: imageVariable, value: images.operand },
              ],
              resources: { requests: { cpu: "20m", memory: "96Mi" }, limits: { memory: "256Mi" } },
              securityContext: CONTAINER_SECURITY,
              volumeMounts: [{ name: "tmp", mountPath: "/tmp" }],
            },
          ],
          volumes: [{ name: "tmp", emptyDir: {} }],
        },
      },
    },
  };
}

/** The rules of an operator's roles of a kind. Nothing of them depends on a configuration. */
export function operatorRules({ roles, namespace }: Operator, kind: DeclaredRole["kind"]): JsonObject[] {
  const declared = { installation: { ...DEFAULT_INSTALLATION, namespace }, gates: new Gates([]) };
  return roles
    .filter((role) => role.kind === kind)
    .flatMap(({ rights }) => grantedRights(rights, declared).map(ruleOf));
}
