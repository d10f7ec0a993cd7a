import type { ConfigurationWrapper } from "../../../core/policy/configuration.ts";
import type { Kind } from "../../../core/policy/kind.ts";
import { projectRequestLimit } from "../kinds.ts";
import { OPERAND } from "../operand-names.ts";
import type { ProjectLimits } from "./policy.ts";
import { checkLimits, prepareSpec } from "./prepare.ts";

/** OpenShift 3's, OpenShift 4's, and Kubernetes' own for `--admission-control-config-file`. */
const WRAPPERS: readonly ConfigurationWrapper[] = [
  {
    apiVersions: ["v1"],
    kind: "MasterConfig",
    paths: [
      ["admissionConfig", "pluginConfig", "*", "configuration"],
      ["kubernetesMasterConfig", "admissionConfig", "pluginConfig", "*", "configuration"],
    ],
  },
  {
    apiVersions: ["openshiftcontrolplane.config.openshift.io/v1"],
    kind: "OpenShiftAPIServerConfig",
    paths: [["admission", "pluginConfig", "*", "configuration"]],
  },
  {
    apiVersions: ["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"],
    kind: "AdmissionConfiguration",
    paths: [["plugins", "*", "configuration"]],
  },
];

/**
 * The configuration of OpenShift's plugin, which is imported, and the operand's file: the fields of the custom resource
 * in a file.
 */
export const limitConfiguration: Kind<ProjectLimits> = {
  ...projectRequestLimit,
  group: "project.openshift.io",
  kind: OPERAND.configurationKind,
  standing: "file",
  summary: "limits how many projects each user may have, in a file",
  configuration: {
    apiVersions: {
      v1: "v1",
      "requestlimit.project.openshift.io/v1": "v1",
      "project.openshift.io/v1": "v1",
      [OPERAND.configurationApiVersion]: "v1",
    },
    // OpenShift 3's, from before kinds had groups.
    deprecated: { v1: "requestlimit.project.openshift.io/v1" },
    wrappers: WRAPPERS,
  },
  check: checkLimits,
  prepare: prepareSpec,
};
