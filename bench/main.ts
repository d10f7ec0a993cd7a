// `npm run bench`: side-by-side measurements on plain Node.
import { writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { ClusterServers } from "./cluster/cluster-servers.ts";
import { writes } from "./cluster/node-status-writes.ts";
import { pods } from "./cluster/pods.ts";
import { projects } from "./cluster/projects.ts";
import { relabel } from "./cluster/relabel.ts";
import { rollout } from "./cluster/rollout.ts";
import { sizes } from "./cluster/sizes.ts";
import { start } from "./cluster/start.ts";
import { growth } from "./growth/growth.ts";
import { optionsOf } from "./options.ts";
import { dashboard } from "./parts/dashboard.ts";
import { evaluation } from "./parts/evaluation.ts";
import { fairness } from "./parts/fairness.ts";
import { foresight } from "./parts/foresight.ts";
import { load } from "./parts/load.ts";
import { memory } from "./parts/memory.ts";
import { nodeGuardPart } from "./parts/node-guard.ts";
import { nodes } from "./parts/node-labels.ts";
import { podSecurity } from "./parts/pod-security.ts";
import { change } from "./parts/policy-change.ts";
import { ready } from "./parts/ready.ts";
import { reviewCost } from "./parts/review-cost.ts";
import { scheduling } from "./parts/scheduling.ts";
import { simulation } from "./parts/simulation.ts";
import { tenPoliciesPart } from "./parts/ten-policies.ts";
import { type Result, tableOf, targetsThat } from "./report/result.ts";
import { CONTENDERS, CONTESTS } from "./rivals/contenders.ts";
import { rivals } from "./rivals/rivals.ts";
import type { Servers } from "./servers/servers.ts";

/** In this order: parts that need a fresh usher come before those that leave it warm. */
const PARTS: Readonly<Record<string, (servers: Servers) => Promise<Result>>> = {
  ready,
  memory,
  change,
  cost: reviewCost,
  load,
  evaluation,
  "ten-policies": tenPoliciesPart,
  nodes,
  "node-guard": nodeGuardPart,
  "pod-security": podSecurity,
  scheduling,
  growth,
  fairness,
  foresight,
  dashboard,
  simulation,
};

/** `--cluster`: parts that need a real control plane. */
const CLUSTER_PARTS: Readonly<Record<string, (servers: ClusterServers) => Promise<Result>>> = {
  pods,
  rollout,
  start,
  writes,
  relabel,
  projects,
  sizes,
};

/** Above this share of the cores other work runs here. */
const BUSY = 0.3;

const options = optionsOf(process.argv.slice(2), {
  alone: Object.keys(PARTS),
  cluster: Object.keys(CLUSTER_PARTS),
  rivals: [...Object.keys(CONTESTS), ...CONTENDERS],
});
if ("text" in options) {
  (options.code === 0 ? process.stdout : process.stderr).write(options.text);
  process.exit(options.code);
}

const cores = availableParallelism();
const [busy = 0] = loadavg();
const machine = { node: process.version, processor: cpus()[0]?.model ?? "unknown", cores, loadBefore: busy };
const contests = Object.values(CONTESTS).filter(({ name }) => options.only.includes(name));
const parts = options.rivals
  ? Object.fromEntries(
      (contests.length > 0 ? contests : Object.values(CONTESTS)).map((contest) => [
        contest.name,
        (on: ClusterServers) => rivals(on, options.only, contest),
      ]),
    )
  : options.cluster
    ? CLUSTER_PARTS
    : PARTS;
const servers = new ClusterServers(options.quick);
const results: Result[] = [];
const figures: Record<string, unknown> = { machine, quick: options.quick, cluster: options.cluster };
try {
  for (const [name, measure] of Object.entries(parts)) {
    if (!options.rivals && options.only.length > 0 && !options.only.includes(name)) continue;
    const result = await measure(servers);
    results.push(result);
    figures[name] = result.figures;
  }
} finally {
  await servers.close();
}

process.stdout.write(`\n${machine.processor}, ${cores} cores, Node ${process.version}\n`);
if (busy > cores * BUSY) {
  process.stdout.write(
    `The machine was busy with other work (load ${busy.toFixed(1)}): the figures are noisy.\n`,
  );
}
process.stdout.write(`\n${tableOf(results)}`);
if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(figures, null, 2)}\n`);
const missed = targetsThat(results, false);
const unsure = targetsThat(results, undefined);
if (missed > 0) process.stdout.write(`\n${missed} of the targets missed.\n`);
if (unsure > 0)
  process.stdout.write(`\n${unsure} of the targets could not be judged: run it again on a quiet machine.\n`);
process.exit(missed + unsure > 0 && !options.quick ? 1 : 0);
