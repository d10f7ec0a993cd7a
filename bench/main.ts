// `npm run bench`: side-by-side measurements on plain Node.
import { writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { change } from "./change.ts";
import { pods } from "./cluster-pods.ts";
import { rollout } from "./cluster-rollout.ts";
import { ClusterStage } from "./cluster-stage.ts";
import { start } from "./cluster-start.ts";
import { writes } from "./cluster-writes.ts";
import { load } from "./load.ts";
import { memory } from "./memory.ts";
import { nodes } from "./node-labels.ts";
import { relabel } from "./node-labels-relabel.ts";
import { optionsOf } from "./options.ts";
import { pieces } from "./pieces.ts";
import { ready } from "./ready.ts";
import { type Result, tableOf, targetsThat } from "./result.ts";
import type { Stage } from "./stage.ts";

/** In this order: what must find usher fresh comes before what leaves it warm. */
const PARTS: Readonly<Record<string, (stage: Stage) => Promise<Result>>> = {
  ready,
  memory,
  change,
  load,
  pieces,
  nodes,
};

/** `--cluster`: what only a real control plane can show. */
const CLUSTER_PARTS: Readonly<Record<string, (stage: ClusterStage) => Promise<Result>>> = {
  pods,
  rollout,
  start,
  writes,
  relabel,
};

/** Above this share of the cores somebody else is working here. */
const BUSY = 0.3;

const options = optionsOf(process.argv.slice(2), {
  alone: Object.keys(PARTS),
  cluster: Object.keys(CLUSTER_PARTS),
});
if ("text" in options) {
  (options.code === 0 ? process.stdout : process.stderr).write(options.text);
  process.exit(options.code);
}

const cores = availableParallelism();
const [busy = 0] = loadavg();
const machine = { node: process.version, processor: cpus()[0]?.model ?? "unknown", cores, loadBefore: busy };
const stage = new ClusterStage(options.quick);
const results: Result[] = [];
const figures: Record<string, unknown> = { machine, quick: options.quick, cluster: options.cluster };
try {
  for (const [name, measure] of Object.entries(options.cluster ? CLUSTER_PARTS : PARTS)) {
    if (options.only.length > 0 && !options.only.includes(name)) continue;
    const result = await measure(stage);
    results.push(result);
    figures[name] = result.figures;
  }
} finally {
  await stage.close();
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
