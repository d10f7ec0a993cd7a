import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { ModuleFinding } from "../../core/decision/finding.ts";
import { failureOf } from "../../core/decision/need.ts";
import { resourceName } from "../../core/decision/request.ts";
import type { Host } from "../../core/evaluate/evaluate.ts";
import type { Evaluation } from "../../core/evaluate/evaluate-hooks.ts";
import type { Source } from "../../core/evaluate/source.ts";
import {
  blastRadius,
  blastRadiusWarnings,
  MOST_PODS,
  type PodPage,
} from "../../core/foresight/blast-radius.ts";
import { previewsPolicies } from "../../core/installation/installation.ts";
import { equal, isObject } from "../../core/json.ts";
import { factsOf, type Log } from "../../core/log.ts";
import { POLICY_CHECK } from "../../core/module/policy-check.ts";
import { TimeSlices } from "../../core/time-slices.ts";

/** As long as Pod Security looks at pods when the level of a namespace changes. */
const MOST_MS = 1_000;

/** Other reviews wait for one slice at most. A page of this many pods is parsed in about as long. */
const SLICE_MS = 1;
const PAGE = 10;

const BUSY = "not compared with what exists: another policy is being compared; usher diff compares it";

/** Lower than the problems of the policy itself. */
const RANK = 40;

/**
 * Says what the write of a policy changes for the pods, nodes and users that exist, as warnings. Works in slices between other reviews,
 * one policy at a time, and never fails: the write passes in any case.
 */
export class PolicyPreview {
  readonly #source: Source;
  readonly #log: Log;
  readonly #now: () => number;
  #busy = false;

  constructor(source: Source, log: Log, now: () => number) {
    this.#source = source;
    this.#log = log;
    this.#now = now;
  }

  /** Whether a request that was evaluated changes a policy. */
  wants({ request, denials, asked }: Evaluation): boolean {
    return (
      denials.length === 0 &&
      asked.some(({ module }) => module === POLICY_CHECK) &&
      isObject(request.object) &&
      !equal(request.object["spec"], request.oldObject?.["spec"]) &&
      previewsPolicies(this.#source.assembly.installation)
    );
  }

  /** The evaluation with the warnings. */
  async of(evaluation: Evaluation, host: Host): Promise<Evaluation> {
    const warnings = await this.#warnings(evaluation, host);
    const findings = warnings.map((message, i): ModuleFinding => {
      const warn = RANK - i / warnings.length;
      return { module: POLICY_CHECK, rule: "blast-radius", outcome: "skipped", message, warn };
    });
    return { ...evaluation, findings: [...evaluation.findings, ...findings] };
  }

  async #warnings({ request }: Evaluation, host: Host): Promise<readonly string[]> {
    if (this.#busy) return [BUSY];
    this.#busy = true;
    try {
      const { resource, namespace, name, object } = request;
      const until = performance.now() + MOST_MS;
      const remaining = () => (host.expired() ? 0 : until - performance.now());
      const change = { resource: resourceName(resource), namespace, name, object };
      const slices = new TimeSlices({ clock: () => performance.now(), turn: nextTurn, ms: SLICE_MS });
      const found = await blastRadius(this.#source.assembly, change, {
        now: this.#now(),
        pods: (within) => podPages(host, within, remaining),
        pause: () => slices.next(),
        expired: () => remaining() <= 0,
      });
      return found === undefined ? [] : blastRadiusWarnings(found);
    } catch (error) {
      this.#log.error(factsOf(error), "internal error comparing a policy with what exists");
      return [];
    } finally {
      this.#busy = false;
    }
  }
}

/** Requests each page while the previous one is evaluated. Ends early if the time is over: then not all pods were read. */
async function* podPages(
  host: Host,
  namespace: string | undefined,
  remaining: () => number,
): AsyncGenerator<PodPage> {
  const where = namespace === undefined ? {} : { namespace };
  const ask = (token?: string) => {
    const list = { resource: "pods", ...where, ...(token === undefined ? {} : { continue: token }) };
    return inTime(remaining(), (timeoutMs) => host.fetch([{ list, limit: PAGE, share: 1, timeoutMs }]));
  };
  let asked = ask();
  for (let read = 0; read < MOST_PODS && remaining() > 0; ) {
    const [fact] = (await asked) ?? [];
    if (fact === undefined || !("found" in fact) || !Array.isArray(fact.found)) {
      if (fact === undefined) return;
      if ("absent" in fact) return yield { pods: [], last: true };
      throw new Error(failureOf(fact) ?? "not a list");
    }
    const pods = fact.found.filter(isObject);
    const { next } = fact;
    if (next !== undefined) asked = ask(next);
    const total = fact.total === undefined ? undefined : read + fact.total;
    yield { pods, total, last: next === undefined && fact.complete };
    if (next === undefined) return;
    read += pods.length;
  }
}

/** `undefined` if the source does not keep to the timeout. */
async function inTime<Value>(
  ms: number,
  ask: (timeoutMs: number) => Promise<Value>,
): Promise<Value | undefined> {
  const timeoutMs = Math.max(1, Math.ceil(ms));
  const over = new AbortController();
  const late = sleep(timeoutMs, undefined, { signal: over.signal });
  return Promise.race([ask(timeoutMs), late]).finally(() => over.abort());
}
