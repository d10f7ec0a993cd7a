// The cost of ten thousand rules for a node that joins, and of one changed rule for a leader with five thousand nodes.

import { reviewResponse } from "../../src/admission/http/http-response.ts";
import { decodeReview, Undecodable } from "../../src/admission/review/decode.ts";
import { assembleModules } from "../../src/cli/source/source.ts";
import { Facts } from "../../src/core/decision/need.ts";
import { evaluate, type Host } from "../../src/core/evaluate/evaluate.ts";
import { responseOf } from "../../src/core/evaluate/response.ts";
import type { JsonObject } from "../../src/core/json.ts";
import type { Assembly } from "../../src/core/module/assembly.ts";
import { kindResource } from "../../src/core/policy/kind.ts";
import type { Change } from "../../src/core/view/view.ts";
import { modules } from "../../src/modules/all.ts";
import { labels } from "../../src/modules/node-labels/kinds.ts";
import { nodeLabelsReconciler } from "../../src/modules/node-labels/reconcile/reconciler.ts";
import { count, range, time } from "../report/number.ts";
import { atMost, type Result, type Row } from "../report/result.ts";
import { type Spread, spreadOf } from "../report/statistics.ts";
import type { Servers } from "../servers/servers.ts";

const RULES = 10_000;
const NODES = 5_000;
/** The hook's timeout is a second, and TLS, HTTP and a busy machine need their share of it. */
const LIMIT_MS = 100;
/** As for any changed policy. */
const BLOCKED_MS = 10;

const NO_HOST: Host = {
  fetch: () => Promise.reject(new Error("the bench needs no facts")),
  commit: () => Promise.reject(new Error("the bench commits nothing")),
  expired: () => false,
};

/** Common node names: each by its whole name, by a prefix and a pattern, or, at worst, by a suffix. */
const SHAPES: Readonly<Record<string, (i: number) => string>> = {
  "by whole names": (i) => `worker-${i}`,
  "by a beginning": (i) => `site-${i}-worker-[0-9]+`,
  "by an end": (i) => `.*-rack-${i}`,
};

const NAMES: Readonly<Record<string, (i: number) => string>> = {
  "by whole names": (i) => `worker-${i}`,
  "by a beginning": (i) => `site-${i}-worker-3`,
  "by an end": (i) => `worker-3-rack-${i}`,
};

export function ruleChange(name: string, pattern: string, value: string): Change {
  const object: JsonObject = {
    apiVersion: "node-labels.openshift.io/v1beta1",
    kind: "Labels",
    metadata: { name, namespace: "default" },
    spec: { nodeNamePatterns: [pattern], labels: { "bench.example.com/pool": value } },
  };
  return { resource: kindResource(labels), namespace: "default", name, object };
}

export function nodes(servers: Servers): Promise<Result> {
  servers.say(`measuring ${RULES} rules against one new node …`);
  const times = servers.quick ? 100 : 1_000;
  const rows: Row[] = [];
  const figures: Record<string, unknown> = {};
  for (const [shape, pattern] of Object.entries(SHAPES)) {
    const assembly = assembleModules(modules);
    assembly.apply(Array.from({ length: RULES }, (_, i) => ruleChange(`rule-${i}`, pattern(i), "p")));
    const name = NAMES[shape] ?? String;
    const first = joining(assembly, name, 1);
    const spread = joining(assembly, name, times);
    rows.push({
      what: `a new node, ${count(RULES)} rules ${shape}, one means it`,
      figure: time(spread.median),
      spread: range(spread, time),
      detail: `the very first: ${time(first.median)}`,
      target: atMost(LIMIT_MS, spread.median / 1e3, " ms"),
    });
    figures[shape] = { microseconds: spread, first: first.median };
  }
  const changed = changing(servers.quick ? 20 : 100);
  rows.push({
    what: `one changed rule, ${count(NODES)} nodes: the leader's loop is blocked for`,
    figure: time(changed.median),
    spread: range(changed, time),
    target: atMost(BLOCKED_MS, changed.median / 1e3, " ms"),
  });
  return Promise.resolve({
    title: "Labels of nodes, in process",
    rows,
    figures: { rules: RULES, nodes: NODES, births: figures, changedMicroseconds: changed },
  });
}

/** From a decoded request to the text of the response, each time for another node; µs. */
function joining(assembly: Assembly, nameOf: (i: number) => string, times: number): Spread {
  const hooks = assembly.hooks.filter(({ phase }) => phase === "mutate");
  const took: number[] = [];
  for (let i = 0; i < times; i++) {
    const request = decodeReview(Buffer.from(review(nameOf((i * 7_919) % RULES))));
    if (request instanceof Undecodable) throw new Error(request.message);
    const started = performance.now();
    const result = evaluate({ assembly, phase: "mutate", hooks, request, now: 0 }, NO_HOST);
    if (result instanceof Promise) throw new Error("the bench needs no facts");
    const { body } = reviewResponse(responseOf(result), "mutate", result);
    took.push((performance.now() - started) * 1e3);
    // A bench of wrong answers measures nothing.
    if (!body.includes('"patch":')) throw new Error(`the node was not labelled: ${body}`);
  }
  return spreadOf(took);
}

function review(name: string): string {
  return JSON.stringify({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "1",
      kind: { group: "", version: "v1", kind: "Node" },
      resource: { group: "", version: "v1", resource: "nodes" },
      operation: "CREATE",
      name,
      userInfo: { username: `system:node:${name}`, groups: ["system:nodes"] },
      object: {
        apiVersion: "v1",
        kind: "Node",
        metadata: { name, labels: { "kubernetes.io/hostname": name } },
      },
    },
  });
}

/** How long one rule whose value changes on every node blocks the leader's loop; µs. */
function changing(times: number): Spread {
  const assembly = assembleModules(modules);
  const nodeChange = (i: number): Change => ({
    resource: "nodes",
    namespace: "",
    name: `node-${i}`,
    object: { apiVersion: "v1", kind: "Node", metadata: { name: `node-${i}`, labels: { a: "b" } } },
  });
  assembly.apply(Array.from({ length: NODES }, (_, i) => nodeChange(i)));
  const took: number[] = [];
  for (let i = 0; i < times; i++) {
    const [real] = assembly.apply([ruleChange("all", "node-[0-9]+", `v${i}`)]);
    if (real === undefined) throw new Error("the change was not taken for one");
    took.push(longestStep(assembly, real));
  }
  return spreadOf(took);
}

/** A leader processes some nodes at a time, and answers admissions in between: the longest step counts; µs. */
function longestStep(assembly: Assembly, change: Change): number {
  const state = nodeLabelsReconciler.initialState();
  let longest = 0;
  const timed = <T>(work: () => T): T => {
    const started = performance.now();
    const result = work();
    longest = Math.max(longest, (performance.now() - started) * 1e3);
    return result;
  };
  const keys = [...timed(() => nodeLabelsReconciler.keys(change, state, { view: assembly.view, assembly }))];
  for (const key of keys) {
    if (key.kind !== "sweep") continue;
    const result = timed(() =>
      nodeLabelsReconciler.reconcile(key, state, {
        view: assembly.view,
        facts: new Facts(),
        now: 0,
        assembly,
      }),
    );
    if ("need" in result) throw new Error("the bench needs no facts");
    keys.push(...(result.enqueue ?? []));
  }
  if (keys.filter((key) => key.kind === "node").length < NODES) throw new Error(`only ${keys.length} keys`);
  return longest;
}
