import { type JsonObject, stringAt } from "../../../core/json.ts";
import { labelsOf } from "../../../core/kubernetes/object.ts";
import { atLeast, parseVersion } from "../../../core/kubernetes/versions.ts";
import { NODES, type Read } from "../../../core/module/module.ts";
import type { View } from "../../../core/view/view.ts";
import { OS_LABEL } from "../os/resolve.ts";

const BY_OS = "os";

export const NODE_READ: Read = {
  ...NODES,
  keep: [
    ["metadata", "labels", OS_LABEL],
    ["status", "nodeInfo", "operatingSystem"],
    ["status", "nodeInfo", "kubeletVersion"],
  ],
  indexes: [
    { name: BY_OS, values: (node) => [nodeOS(node), labelledOS(node)].filter((os) => os !== undefined) },
  ],
  why: "know which operating systems there are",
};

/** The kubelet's report, else the label, which any client that may patch nodes can change. */
export function nodeOS(node: JsonObject): string | undefined {
  return reportedOS(node) ?? labelledOS(node);
}

/** Some virtual kubelets report `Linux`, and label their node `linux`. */
export function reportedOS(node: JsonObject): string | undefined {
  return named(stringAt(node, "status", "nodeInfo", "operatingSystem")?.toLowerCase());
}

function labelledOS(node: JsonObject): string | undefined {
  return named(stringAt(labelsOf(node), OS_LABEL));
}

function named(os: string | undefined): string | undefined {
  return os === "" ? undefined : os;
}

/** The label's value if it differs from the kubelet's report; empty if the label is missing. */
export function driftedLabel(node: JsonObject): string | undefined {
  const reported = reportedOS(node);
  const label = stringAt(labelsOf(node), OS_LABEL) ?? "";
  return reported === undefined || label === reported ? undefined : label;
}

/** From this minor version on the kubelet refuses pods of another OS. */
const REFUSING_MINOR = 23;

/** The version of a kubelet that runs pods of any OS. */
export function oldKubelet(node: JsonObject): string | undefined {
  const text = stringAt(node, "status", "nodeInfo", "kubeletVersion") ?? "";
  const version = parseVersion(text);
  return version === undefined || atLeast(version, REFUSING_MINOR) ? undefined : text;
}

/** Whether it is known that no node runs this OS, by label or by report. */
export function noNodeRuns(view: View, os: string): boolean {
  if (!view.served(NODE_READ.resource)) return false;
  for (const _ of view.lookup(NODE_READ.resource, BY_OS, os)) return false;
  return true;
}
