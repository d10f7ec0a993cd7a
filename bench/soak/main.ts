// `npm run soak`: an installed usher under steady load, quarter by quarter.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type Cluster, startCluster } from "../../test/cluster/cluster.ts";
import { installReplicas, waitInForce } from "../cluster/install.ts";
import { type Page, pagesOf, workOf } from "../cluster/replicas.ts";
import { startWorker, type Worker } from "../cluster/worker-process.ts";
import { tableOf, targetsThat } from "../report/result.ts";
import { seriesOf } from "../servers/scrape.ts";
import { bucketsOf, quantileBetween } from "./histogram.ts";
import type { LoadOptions } from "./load-worker.ts";
import { CONFIGURATION, OBJECTS } from "./objects.ts";
import { type Quarter, resultOf, type Seen } from "./quarter.ts";

const USAGE = `npm run soak -- [--minutes N] [--json FILE]

  --minutes N  how long in all (default 20), in four quarters; the first two minutes of trust of a certificate want 2.5 at least
  --json FILE  writes all figures

Ends with code 1 where in the last quarter memory is more than 10 % or p99 more than 25 % above the second, or a request failed.
`;

const LOOK_EVERY_MS = 5_000;
const REPLICAS = 2;
/** All of it would be a log of hundreds of megabytes. */
const NO_AUDIT = { apiVersion: "audit.k8s.io/v1", kind: "Policy", rules: [{ level: "None" }] };

function optionsOf(): { readonly minutes: number; readonly json: string | undefined } {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "20" },
      json: { type: "string" },
      help: { type: "boolean" },
    },
  });
  const minutes = Number(values.minutes);
  if (values.help === true || !(minutes > 0)) {
    process.stdout.write(USAGE);
    process.exit(values.help === true ? 0 : 2);
  }
  return { minutes, json: values.json };
}

const say = (text: string) => process.stderr.write(`${text}\n`);

async function installAll(cluster: Cluster): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "usher-soak-"));
  try {
    const file = join(folder, "usher.json");
    writeFileSync(file, JSON.stringify(CONFIGURATION));
    for (const name of ["soak-a", "soak-b"]) await cluster.createNode(name);
    await installReplicas(cluster, REPLICAS, "--config", file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  await cluster.apply(...OBJECTS);
  await waitInForce(cluster);
}

const durations = async (cluster: Cluster) => bucketsOf((await pagesOf(cluster)).map(({ text }) => text));
const memoryOn = ({ text }: Page) => seriesOf(text, "process_resident_memory_bytes");

async function measure(
  cluster: Cluster,
  worker: Worker<LoadOptions, Seen>,
  seconds: number,
): Promise<Quarter> {
  const before = await workOf(cluster);
  const timesBefore = await durations(cluster);
  const memory = new Map<string, number[]>();
  let over = false;
  const looking = (async () => {
    while (!over) {
      for (const page of await pagesOf(cluster))
        memory.set(page.pod, [...(memory.get(page.pod) ?? []), memoryOn(page)]);
      await sleep(LOOK_EVERY_MS);
    }
  })();
  const seen = await worker.ask({ seconds }).finally(() => {
    over = true;
  });
  await looking;
  const after = await workOf(cluster);
  return {
    ...seen,
    memory: Object.fromEntries(memory),
    own: quantileBetween(timesBefore, await durations(cluster), 0.99),
    reviews: after.reviews - before.reviews,
    processor: (after.processor - before.processor) / 1e6,
    load: loadavg()[1] ?? 0,
  };
}

const { minutes, json } = optionsOf();
const seconds = (minutes * 60) / 4;
say("starting a control plane and installing usher …");
const quarters: Quarter[] = [];
{
  await using cluster = await startCluster({
    auditPolicy: NO_AUDIT,
    flags: { "kube-apiserver": ["--disable-admission-plugins=PodSecurity"] },
  });
  await installAll(cluster);
  await using worker = startWorker<LoadOptions, Seen>(join(import.meta.dirname, "load-worker.ts"), cluster);
  for (let i = 1; i <= 4; i++) {
    say(`quarter ${i} of 4, ${(seconds / 60).toFixed(1)} minutes …`);
    const quarter = await measure(cluster, worker, seconds);
    for (const failure of quarter.failed.slice(0, 5)) say(`  failed: ${failure}`);
    quarters.push(quarter);
  }
}

const result = resultOf(quarters, seconds);
process.stdout.write(`\n${availableParallelism()} cores, Node ${process.version}\n\n${tableOf([result])}`);
if (json !== undefined) writeFileSync(json, `${JSON.stringify(result.figures, null, 2)}\n`);
const missed = targetsThat([result], false);
if (missed > 0) process.stdout.write(`\n${missed} of the targets missed.\n`);
process.exit(missed > 0 ? 1 : 0);
