// `npm run bench -- --rivals`: usher beside what people would use in its place, through one API server.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type JsonObject, listAt } from "../../src/core/json.ts";
import { nameOf } from "../../src/core/kubernetes/object.ts";
import { eventually } from "../../test/cluster/access/wait.ts";
import { type Cluster, type ClusterOptions, startCluster } from "../../test/cluster/cluster.ts";
import { inParallel } from "../cluster/parallel.ts";
import { startWorker, type Worker } from "../cluster/worker-process.ts";
import { count, time } from "../report/number.ts";
import type { Result, Row } from "../report/result.ts";
import { quantile, spreadOf } from "../report/statistics.ts";
import type { Servers } from "../servers/servers.ts";
import {
  CONTENDERS,
  type ContenderName,
  type Contest,
  namespaceOf,
  podsPath,
  SELECTED,
} from "./contenders.ts";
import type { Created, Creations } from "./creations-worker.ts";
import { type Contender, prepare, STARTS, usedByApiServer } from "./start.ts";

const FULL = { rounds: 3, sizes: [1, 10, 100, 1_000], pods: 600, slowPods: 300, warmPods: 300 };
const QUICK = { rounds: 1, sizes: [1, 100], pods: 300, slowPods: 150, warmPods: 150 };
/** Pods a second where latency is measured; all contenders can do this many. */
const RATE = 30;
const WRITERS = 8;
const IN_FORCE_WITHIN_MS = 300_000;
const REST_MS = 1_500;

interface Sample {
  readonly round: number;
  readonly by: ContenderName;
  readonly policies: number;
  /** CPU time for each pod at the limit, in µs. */
  readonly apiServer: number;
  readonly own: number;
  readonly perSecond: number;
  /** ms */
  readonly atLimit: Latency;
  readonly atRate: Latency;
  /** Bytes. */
  readonly memory: { readonly apiServer: number; readonly own: number };
  /** ms from the write of another pool until a new pod gets it. */
  readonly changeMs: number | undefined;
}

interface Latency {
  readonly p50: number;
  readonly p99: number;
}

/** One contest; `only`: of these contenders, if it names any. */
export async function rivals(servers: Servers, only: readonly string[], contest: Contest): Promise<Result> {
  const chosen = CONTENDERS.filter((name) => only.includes(name));
  const names = (chosen.length > 0 ? chosen : CONTENDERS).filter(
    (name) => contest.policies[name] !== undefined,
  );
  const { rounds, pods, slowPods, warmPods, ...plan } = servers.quick ? QUICK : FULL;
  const sizes = contest.many ? plan.sizes : [1];
  servers.say(
    `${contest.name}: starting a control plane and the contenders; the first time they are built …`,
  );
  const scratch = mkdtempSync(join(tmpdir(), "usher-rivals-"));
  await using cluster = await startCluster(pluginOptions(scratch, contest));
  await prepare(cluster, names, contest);
  const contenders: Contender[] = [];
  const absent = new Map(Object.entries(contest.absent ?? {}) as [ContenderName, string][]);
  const samples: Sample[] = [];
  try {
    for (const name of names) {
      try {
        contenders.push(await STARTS[name](cluster, scratch, contest));
      } catch (error) {
        absent.set(name, error instanceof Error ? error.message : String(error));
        servers.say(`${name} can't be measured: ${absent.get(name)}`);
      }
    }
    await using worker = startWorker<Creations, Created>(
      join(import.meta.dirname, "creations-worker.ts"),
      cluster,
    );
    for (let round = 1; round <= rounds; round++)
      for (const policies of sizes)
        for (const contender of round % 2 === 1 ? contenders : contenders.toReversed()) {
          const { name } = contender;
          const field = new Field(cluster, contest, name);
          if (absent.has(name) || (policies > 1 && !field.hasPolicies)) continue;
          servers.say(`round ${round} of ${rounds}: ${name}, ${count(policies)} policies …`);
          try {
            await field.write(policies);
            await field.waitInForce("a");
            await worker.ask({ contest: contest.name, by: name, pods: warmPods });
            samples.push(await measure(field, contender, worker, { round, policies, pods, slowPods }));
          } catch (error) {
            const why = error instanceof Error ? error.message : String(error);
            absent.set(name, `at ${count(policies)} policies: ${why}`);
            servers.say(`${name} is left out from here on: ${why}`);
          } finally {
            await field.clear(policies);
          }
        }
  } finally {
    for (const { stop } of contenders) await stop();
    rmSync(scratch, { recursive: true, force: true });
  }
  return resultOf(contest, samples, absent, { rounds, sizes, pods });
}

/** The plugin PodSecurity of the API server leaves usher's namespace to usher. */
function pluginOptions(scratch: string, { judged }: Contest): ClusterOptions {
  if (judged === undefined) return {};
  const file = join(scratch, "admission.json");
  const configuration = {
    apiVersion: "pod-security.admission.config.k8s.io/v1",
    kind: "PodSecurityConfiguration",
    exemptions: { namespaces: [namespaceOf("usher")] },
  };
  const plugins = [{ name: "PodSecurity", configuration }];
  writeFileSync(
    file,
    JSON.stringify({ apiVersion: "apiserver.config.k8s.io/v1", kind: "AdmissionConfiguration", plugins }),
  );
  return { flags: { "kube-apiserver": [`--admission-control-config-file=${file}`] } };
}

async function measure(
  field: Field,
  { name: by, used }: Contender,
  worker: Worker<Creations, Created>,
  { round, policies, pods, slowPods }: { round: number; policies: number; pods: number; slowPods: number },
): Promise<Sample> {
  const { cluster, contest } = field;
  const atRate = await worker.ask({ contest: contest.name, by, pods: slowPods, perSecond: RATE });
  await field.forgetPods();
  const before = { apiServer: usedByApiServer(cluster), own: await used() };
  const atLimit = await worker.ask({ contest: contest.name, by, pods });
  const after = { apiServer: usedByApiServer(cluster), own: await used() };
  await field.forgetPods();
  return {
    round,
    by,
    policies,
    apiServer: (after.apiServer.processor - before.apiServer.processor) / pods,
    own: (after.own.processor - before.own.processor) / pods,
    perSecond: atLimit.perSecond,
    atLimit: latencyOf(atLimit),
    atRate: latencyOf(atRate),
    memory: { apiServer: after.apiServer.memoryBytes, own: after.own.memoryBytes },
    changeMs: contest.many && field.hasPolicies ? await field.changeTime() : undefined,
  };
}

function latencyOf({ took }: Created): Latency {
  return { p50: quantile(took, 0.5), p99: quantile(took, 0.99) };
}

/** The policies and pods of one contender in a contest. */
class Field {
  readonly cluster: Cluster;
  readonly contest: Contest;
  readonly #by: ContenderName;

  constructor(cluster: Cluster, contest: Contest, by: ContenderName) {
    this.cluster = cluster;
    this.contest = contest;
    this.#by = by;
  }

  get hasPolicies(): boolean {
    return this.#policy(SELECTED, "a").length > 0;
  }

  #policy(i: number, variant: string) {
    return this.contest.policies[this.#by]?.(i, variant) ?? [];
  }

  async write(policies: number): Promise<void> {
    const create = async (i: number) => {
      for (const { path, object } of this.#policy(i, "a")) await this.cluster.call("POST", path, object);
    };
    // The one that selects comes last: once it has an effect, all are known.
    await inParallel(policies - 1, WRITERS, (i) => create(i + 1));
    await create(SELECTED);
  }

  async clear(policies: number): Promise<void> {
    if (!this.hasPolicies) return;
    await inParallel(policies, WRITERS, async (i) => {
      for (const { path, object } of this.#policy(i, "a"))
        await this.cluster.request("DELETE", `${path}/${nameOf(object)}`);
    });
    const gone = async () => (await this.#outcome()) === undefined;
    await eventually("the policies to have no effect", gone, IN_FORCE_WITHIN_MS);
  }

  /** Of a dry run. */
  async #outcome(): Promise<string | undefined> {
    const { pod, probe = pod, as, outcome } = this.contest;
    const path = `${podsPath(this.#by)}?dryRun=All`;
    const { status, body } = await this.cluster.request("POST", path, probe(), as);
    return outcome(status, body as JsonObject);
  }

  /** Ten pods in a row. */
  async waitInForce(variant: string): Promise<void> {
    const by = this.#by;
    const expected = by === "nothing" ? undefined : this.contest.expected(variant);
    let last: string | undefined;
    const inForce = async () => {
      for (let i = 0; i < 10; i++) {
        last = await this.#outcome();
        if (last !== expected) return false;
      }
      return true;
    };
    try {
      await eventually(`${by} to have an effect`, inForce, IN_FORCE_WITHIN_MS);
    } catch (error) {
      throw new Error(`the last pod: ${last ?? "as it was"}`, { cause: error });
    }
  }

  /** Milliseconds from the write of another variant until a new pod shows it. */
  async changeTime(): Promise<number> {
    const [policy] = this.#policy(SELECTED, "b");
    if (policy === undefined) throw new Error(`${this.#by} has no policy to change`);
    const { path, object } = policy;
    const started = performance.now();
    const { status, body } = await this.cluster.client.request(
      "PATCH",
      `${path}/${nameOf(object)}`,
      { spec: object["spec"] as JsonObject },
      undefined,
      { headers: { "content-type": "application/merge-patch+json" } },
    );
    if (status !== 200) throw new Error(`the policy can't be changed: ${status} ${JSON.stringify(body)}`);
    while ((await this.#outcome()) !== this.contest.expected("b")) {
      if (performance.now() - started > IN_FORCE_WITHIN_MS) throw new Error("a changed policy has no effect");
      await sleep(5);
    }
    return performance.now() - started;
  }

  /** Deletes the pods, and waits until the API server has forgotten them. */
  async forgetPods(): Promise<void> {
    const path = podsPath(this.#by);
    const options = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0 };
    await this.cluster.call("DELETE", path, options);
    await eventually("the pods to be gone", async () => {
      return listAt(await this.cluster.call("GET", `${path}?limit=1`), "items").length === 0;
    });
    await sleep(REST_MS);
  }
}

function resultOf(
  { title }: Contest,
  samples: readonly Sample[],
  absent: ReadonlyMap<ContenderName, string>,
  { rounds, sizes, pods }: { rounds: number; sizes: readonly number[]; pods: number },
): Result {
  const rows: Row[] = [];
  for (const policies of sizes)
    for (const by of CONTENDERS) {
      const own = samples.filter((one) => one.by === by && one.policies === policies);
      if (own.length === 0) continue;
      const median = (value: (sample: Sample) => number) => spreadOf(own.map(value)).median;
      const total = spreadOf(own.map((one) => one.apiServer + one.own));
      const ms = (value: (sample: Sample) => number) => median(value).toFixed(1);
      const mib = (value: (sample: Sample) => number) => count(median(value) / 2 ** 20);
      const change = own.some(({ changeMs }) => changeMs !== undefined)
        ? `; a change after ${count(median(({ changeMs }) => changeMs ?? Number.NaN))} ms`
        : "";
      rows.push({
        what: `${by}, ${count(policies)} ${policies === 1 ? "policy" : "policies"}: CPU time per pod`,
        figure: time(total.median),
        spread: `${time(total.least)} to ${time(total.most)}`,
        detail: [
          `API server ${time(median(({ apiServer }) => apiServer))} + own ${time(median((one) => one.own))}`,
          `${count(median(({ perSecond }) => perSecond))}/s, p50 ${ms(({ atLimit }) => atLimit.p50)} p99 ${ms(({ atLimit }) => atLimit.p99)} ms`,
          `at ${RATE}/s p50 ${ms(({ atRate }) => atRate.p50)} p99 ${ms(({ atRate }) => atRate.p99)} ms`,
          `${mib(({ memory }) => memory.apiServer)} + ${mib(({ memory }) => memory.own)} MiB${change}`,
        ].join("; "),
      });
    }
  for (const [name, why] of absent)
    rows.push({ what: `${name} could not be measured`, figure: "-", detail: why.slice(0, 300) });
  return {
    title: `${title}; ${rounds} interleaved rounds of ${count(pods)} pods, all on loopback`,
    rows,
    figures: { rounds, sizes, pods, samples, absent: Object.fromEntries(absent) },
  };
}
