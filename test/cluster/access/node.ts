import type { Json, JsonObject } from "../../../src/core/json.ts";
import { listAt, stringAt } from "../../../src/core/json.ts";
import type { Client } from "./client.ts";
import { eventually } from "./wait.ts";

export interface NodeOptions {
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly JsonObject[];
  /** Amounts of cpu, memory, pods and others; large by default. */
  readonly capacity?: Readonly<Record<string, string>>;
  readonly conditions?: readonly JsonObject[];
}

/** A node as a kubelet registers it. */
export function nodeObject(name: string, options: NodeOptions = {}): JsonObject {
  const { labels = {}, taints = [], capacity, conditions } = options;
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        ...labels,
      },
    },
    spec: { taints },
    status: {
      ...(capacity === undefined ? {} : { capacity, allocatable: capacity }),
      ...(conditions === undefined ? {} : { conditions }),
    },
  };
}

function isReady(node: Json): boolean {
  const ready = listAt(node, "status", "conditions").find(
    (condition) => stringAt(condition, "type") === "Ready",
  );
  // The taint is removed some moments later; until then no pod is scheduled.
  const notReady = listAt(node, "spec", "taints").some(
    (taint) => stringAt(taint, "key") === "node.kubernetes.io/not-ready",
  );
  return stringAt(ready, "status") === "True" && !notReady;
}

/** Creates a node, and waits until it accepts pods. */
export async function createNode(client: Client, name: string, options: NodeOptions = {}): Promise<void> {
  await client.call("POST", "/api/v1/nodes", nodeObject(name, options));
  await eventually(`node ${name} Ready`, async () =>
    isReady(await client.call("GET", `/api/v1/nodes/${name}`)),
  );
}
