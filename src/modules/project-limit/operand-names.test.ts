import { expect, it } from "vitest";
import { OPERAND } from "./operand-names.ts";

it("the operand has the names that the plugin's operator used", () => {
  expect(OPERAND).toEqual({
    namespace: "openshift-project-request-limit-operator",
    name: "project-request-limit-admission",
    program: "/usr/bin/project-request-limit-admission",
    configurationVariable: "CONFIGURATION_PATH",
    configurationFolder: "/etc/projectrequestlimit/config",
    configurationKey: "limits.yaml",
    configurationFile: "/etc/projectrequestlimit/config/limits.yaml",
    configurationVolume: "configuration",
    configMap: "project-request-limit-configuration",
    configurationApiVersion: "operator.project.openshift.io/v1",
    configurationKind: "ProjectRequestLimitConfig",
    service: "admission-server",
    servicePort: 443,
    port: 8443,
    opsPort: 8080,
    podLabels: { "projectrequestlimits.operator.project.openshift.io/admission-server": "true" },
    servingSecret: "server-serving-cert",
    certificateVolume: "serving-cert",
    certificateFolder: "/etc/projectrequestlimit/serving-cert",
    configurationHash: "projectrequestlimits.operator.project.openshift.io/configuration.hash",
    certificateHash: "projectrequestlimits.operator.project.openshift.io/cert.hash",
    pathsSecret: "project-request-limit-admission-paths",
    pathsKey: "webhook-paths.json",
    apiGroup: "projectrequestlimits.admission.project.openshift.io",
    apiVersion: "v1",
    transportVariable: "TRANSPORT",
    apiService: "v1.projectrequestlimits.admission.project.openshift.io",
    webhook: "projectrequestlimits.admission.project.openshift.io",
    leaving: "projectrequestlimits.operator.project.openshift.io/leaving",
    reviews: "validatingadmissionreviews",
  });
});
