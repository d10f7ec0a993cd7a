import { exemptNamespaces } from "../../../core/installation/installation.ts";
import { evaluateNode } from "../nodes/binding.ts";
import { OS_LABEL } from "../os/resolve.ts";
import { IDENTIFY_POD_OS, MODULE, settingsOf } from "../settings.ts";
import type { Handler } from "./handler.ts";

const NAME = "pod-os-node";

const V1 = { groups: [""], versions: ["v1"], operations: ["CREATE"], scope: "Namespaced" } as const;

/** Compares a pod with the node that it gets: by a binding, on either URL, or from its creation. */
export const binding: Handler = {
  name: NAME,
  hooks: (installation, gates) => [
    {
      name: NAME,
      module: MODULE,
      phase: "validate",
      rules: gates.enabled(IDENTIFY_POD_OS)
        ? [{ ...V1, resources: ["pods/binding", "bindings", "pods"] }]
        : [],
      // A cluster must be able to bind pods in any state of usher; the kubelet refuses mismatches that pass here.
      failure: "open",
      tooLarge: settingsOf(installation).os.nodeMismatch === "Deny" ? "deny" : "allow",
      timeoutSeconds: 1,
      namespaces: { except: exemptNamespaces(installation) },
      conditions: [
        {
          name: "binding-or-node-name",
          expression: `request.kind.kind == "Binding" || (has(object.spec.nodeName) && object.spec.nodeName != "" && (has(object.spec.os) || (has(object.metadata.labels) && "${OS_LABEL}" in object.metadata.labels)))`,
        },
      ],
      sideEffects: "NoneOnDryRun",
    },
  ],
  evaluate: evaluateNode,
  rule: { kind: "Setting", name: "os.nodeMismatch" },
  nothing: "the pod has no node yet, or its OS and the OS of its node do not differ",
};
