import type { NeedMore } from "../../../core/decision/decision.ts";
import type { EventToWrite } from "../../../core/decision/finding.ts";
import { type JsonObject, stringAt } from "../../../core/json.ts";
import { isBeingDeleted, labelsOf } from "../../../core/kubernetes/object.ts";
import type { Figure, Metric } from "../../../core/module/metric.ts";
import {
  liveObject,
  type ReconcileContext,
  type ReconcileResult,
  type Reconciler,
} from "../../../core/module/reconciler.ts";
import { pointer } from "../../../core/path.ts";
import { OS_LABEL } from "../os/resolve.ts";
import { IDENTIFY_POD_OS, settingsOf } from "../settings.ts";
import { driftedLabel, NODE_READ, oldKubelet, reportedOS } from "./node-os.ts";

export type NodeKey = { readonly kind: "node"; readonly name: string };

/** The last report about each node, so that an event is written once per change. */
export type NodeState = Map<string, string>;

const DRIFTED = "usher_pod_os_drifted_nodes";
const OLD_KUBELETS = "usher_pod_os_old_kubelets";

export const NODE_METRICS: readonly Metric[] = [
  {
    name: DRIFTED,
    type: "gauge",
    help: "Nodes whose label kubernetes.io/os is not the OS that their kubelet reports.",
    labels: [],
  },
  {
    name: OLD_KUBELETS,
    type: "gauge",
    help: "Nodes with a kubelet older than 1.23, which runs pods of another OS instead of refusing them.",
    labels: [],
  },
];

/** Reports nodes with a drifted OS label and kubelets that do not refuse; repairs the label from the kubelet's report. */
export const nodeReconciler: Reconciler<NodeKey, NodeState> = {
  initialState: () => new Map(),
  keys: ({ resource, name, object }, state) => {
    if (resource !== NODE_READ.resource) return [];
    if (object === undefined) state.delete(name);
    return object === undefined ? [] : [{ kind: "node", name }];
  },
  reconcile: ({ name }, state, context) => {
    const { view, assembly } = context;
    const node = view.get(NODE_READ.resource, "", name);
    if (assembly?.gates.enabled(IDENTIFY_POD_OS) !== true || node === undefined || isBeingDeleted(node)) {
      state.delete(name);
      return { writes: [] };
    }
    const repair = settingsOf(assembly.installation).os.repairNodeLabels;
    if (repair && driftedLabel(node) !== undefined) return repairedLabel(name, node, state, context);
    return { writes: [], events: news(name, node, state, false) };
  },
  figures: (_state, { view }) => {
    let [drifted, old] = [0, 0];
    for (const node of view.list(NODE_READ.resource)) {
      if (driftedLabel(node) !== undefined) drifted++;
      if (oldKubelet(node) !== undefined) old++;
    }
    const figure = (metric: string, value: number): Figure => ({ metric, labels: {}, value });
    return [figure(DRIFTED, drifted), figure(OLD_KUBELETS, old)];
  },
};

/** The write is based on the stored node: the view keeps no resourceVersion, which changes with every heartbeat. */
function repairedLabel(
  name: string,
  known: JsonObject,
  state: NodeState,
  { facts }: ReconcileContext<NodeKey>,
): ReconcileResult<NodeKey> | NeedMore {
  const of = { resource: NODE_READ.resource, name };
  const live = liveObject(of, facts);
  if (live === undefined) return { writes: [] };
  if ("need" in live) return live;
  const { object: node, resourceVersion } = live;
  const reported = reportedOS(node);
  if (reported === undefined || driftedLabel(node) === undefined) return { writes: [] };
  const path = ["metadata", "labels"];
  const patch =
    labelsOf(node) === undefined
      ? ({ op: "add", path: pointer(path), value: { [OS_LABEL]: reported } } as const)
      : ({ op: "add", path: pointer([...path, OS_LABEL]), value: reported } as const);
  return {
    writes: [{ patch: [patch], of, resourceVersion }],
    events: news(name, known, state, true),
  };
}

/** Events about a node, unless the last ones were equal. */
function news(name: string, node: JsonObject, state: NodeState, repaired: boolean): EventToWrite[] {
  const label = driftedLabel(node);
  const kubelet = oldKubelet(node);
  const said = JSON.stringify([
    label ?? null,
    label === undefined ? null : reportedOS(node),
    kubelet ?? null,
  ]);
  // A repair with a conflict is planned again, and its events have not been written.
  if (!repaired && state.get(name) === said) return [];
  state.set(name, said);
  const uid = stringAt(node, "metadata", "uid");
  const regarding = { apiVersion: "v1", kind: "Node", name, ...(uid === undefined ? {} : { uid }) };
  const event = (reason: string, message: string): EventToWrite => ({
    type: "Warning",
    reason,
    regarding,
    message,
    policy: undefined,
  });
  const events: EventToWrite[] = [];
  if (label !== undefined) {
    const was = label === "" ? "is missing" : `is ${label}`;
    const done = repaired ? "; repaired" : "; the scheduler goes by the label";
    events.push(
      event(
        "NodeOSLabelDrift",
        `label ${OS_LABEL} ${was}, but the kubelet reports ${reportedOS(node)}${done}`,
      ),
    );
  }
  if (kubelet !== undefined)
    events.push(
      event(
        "KubeletIgnoresPodOS",
        `kubelet ${kubelet} runs pods of another OS instead of refusing them; 1.23 and later refuse`,
      ),
    );
  return events;
}
