// The behaviour of nodes and pods under kwok: nodes become Ready once, and again from Unknown; pods run at once; pods
// of a Job succeed; deleted pods go. kwok ignores pods that the harness runs for real.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/core/json.ts";
import { RUN_LABEL } from "../runner/label.ts";

interface Condition {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  readonly values?: readonly string[];
}

const notOurs: Condition = { key: `.metadata.labels["${RUN_LABEL}"]`, operator: "NotIn", values: ["true"] };
const deleted: Condition = { key: ".metadata.deletionTimestamp", operator: "Exists" };
const kept: Condition = { key: ".metadata.deletionTimestamp", operator: "DoesNotExist" };

const READY_UNKNOWN: Condition = {
  key: '.status.conditions.[] | select( .type == "Ready" ) | .status',
  operator: "In",
  values: ["Unknown"],
};

function phase(operator: "In" | "NotIn", value: string): Condition {
  return { key: ".status.phase", operator, values: [value] };
}

function stage(
  name: string,
  kind: string,
  matchExpressions: readonly Condition[],
  next: JsonObject,
): JsonObject {
  return {
    apiVersion: "kwok.x-k8s.io/v1alpha1",
    kind: "Stage",
    metadata: { name },
    spec: {
      resourceRef: { apiGroup: "v1", kind },
      selector: { matchExpressions: matchExpressions.map((condition) => ({ ...condition })) },
      next,
    },
  };
}

/**
 * A node is made Ready once only: a test may then write `Ready: False` and it stays. Amounts that the node was created
 * with are kept. The node controller writes `Unknown` after the machine has slept, when leases are old; that is reset.
 */
const NODE_STATUS = `
phase: Running
conditions:
- {type: Ready, status: "True", reason: KwokReady, message: played by kwok, lastHeartbeatTime: {{ Quote Now }}, lastTransitionTime: {{ Quote Now }}}
{{ range $type := list "MemoryPressure" "DiskPressure" "PIDPressure" }}
- {type: {{ $type }}, status: "False", reason: KwokReady, message: "", lastHeartbeatTime: {{ Quote Now }}, lastTransitionTime: {{ Quote Now }}}
{{ end }}
addresses:
- {type: InternalIP, address: {{ Quote NodeIP }}}
- {type: Hostname, address: {{ Quote .metadata.name }}}
capacity:
{{ with .status.capacity }}{{ YAML . 1 }}{{ else }}  {cpu: "64", memory: 256Gi, pods: "1000"}{{ end }}
allocatable:
{{ with .status.allocatable }}{{ YAML . 1 }}{{ else }}  {cpu: "64", memory: 256Gi, pods: "1000"}{{ end }}
`;

function containers(field: string, state: string, ready: boolean): string {
  return `
{{ range .spec.${field} }}
- {name: {{ Quote .name }}, image: {{ Quote .image }}, imageID: "", restartCount: 0, ready: ${ready}, started: ${ready}, state: ${state}}
{{ end }}`;
}

const RUNNING = "{running: {startedAt: {{ Quote Now }}}}";
const DONE =
  "{terminated: {exitCode: 0, reason: Completed, startedAt: {{ Quote Now }}, finishedAt: {{ Quote Now }}}}";

const POD_RUNNING = `
phase: Running
startTime: {{ Quote Now }}
conditions:
{{ range $type := list "Initialized" "ContainersReady" "Ready" }}
- {type: {{ $type }}, status: "True", lastTransitionTime: {{ Quote Now }}}
{{ end }}
{{ range .spec.readinessGates }}
- {type: {{ Quote .conditionType }}, status: "True", lastTransitionTime: {{ Quote Now }}}
{{ end }}
initContainerStatuses: ${containers("initContainers", DONE, true)}
containerStatuses: ${containers("containers", RUNNING, true)}
hostIP: {{ Quote NodeIP }}
hostIPs:
- {ip: {{ Quote NodeIP }}}
{{ with PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
podIP: {{ index . 0 | Quote }}
podIPs:
- {ip: {{ index . 0 | Quote }}}
{{ end }}
`;

const POD_SUCCEEDED = `
phase: Succeeded
containerStatuses: ${containers("containers", DONE, false)}
`;

const STAGES: readonly JsonObject[] = [
  stage("node-ready", "Node", [phase("NotIn", "Running")], { statusTemplate: NODE_STATUS }),
  stage("node-ready-again", "Node", [READY_UNKNOWN], { statusTemplate: NODE_STATUS }),
  stage("pod-running", "Pod", [kept, notOurs, phase("In", "Pending")], { statusTemplate: POD_RUNNING }),
  stage(
    "pod-of-job-succeeded",
    "Pod",
    [
      kept,
      notOurs,
      phase("In", "Running"),
      { key: ".metadata.ownerReferences.[].kind", operator: "In", values: ["Job"] },
    ],
    { statusTemplate: POD_SUCCEEDED },
  ),
  stage("pod-gone", "Pod", [deleted, notOurs], { delete: true }),
];

export function writeStages(folder: string): void {
  writeFileSync(join(folder, "kwok.yaml"), STAGES.map((item) => JSON.stringify(item)).join("\n---\n"));
}
