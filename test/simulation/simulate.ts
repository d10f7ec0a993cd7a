/** One run of a scenario, with its checks; and the search for the smallest scenario that still fails. */
import { createHash } from "node:crypto";
import { kindResource } from "../../src/core/policy/kind.ts";
import { modules } from "../../src/modules/all.ts";
import {
  exposedPath,
  notReady,
  watchInvariants,
  wrongAnswer,
  wrongLeader,
  wrongLedger,
  wrongNewNode,
  wrongNode,
  wrongRequester,
  wrongStatus,
  wrongWebhooks,
} from "./checks.ts";
import {
  overrideTurns,
  waitsForReapply,
  watchPods,
  wrongCounts,
  wrongGranter,
  wrongGroup,
  wrongNewPod,
  wrongOverride,
  wrongPolicyStatus,
  wrongRetained,
  wrongWithoutReplicas,
} from "./pod-checks.ts";
import { activate, realNow } from "./runtime.ts";
import { describe, type Scenario } from "./scenario.ts";
import { GUARDS } from "./tenants.ts";
import { issuePairs, USHER, WATCHDOG_USER, World } from "./world.ts";

export interface Outcome {
  readonly failure: string | undefined;
  readonly events: number;
  /** Simulated milliseconds. */
  readonly simulatedMs: number;
  readonly realMs: number;
  /** Of the whole history. */
  readonly digest: string;
  readonly world: World;
}

/** After the last fault: a lease expires, the next leader reads everything, and backoffs end. */
const RECONCILED_MS = 30_000;
/** A reservation is released 35 s after the leader has seen it; drift is repaired again after half a minute. */
const RELEASED_MS = 90_000;
/** Nodes and pods of protected groups are counted once a minute, at first maybe in a view that is not current yet. */
const COUNTED_MS = RECONCILED_MS + 60_000;
const LOOK_EVERY_MS = 5_000;
/** Nothing is written any more. */
const STABLE_MS = 30_000;

/** Written while nothing happens. */
const CONTINUOUS = /^(leases\.coordination\.k8s\.io|events(\.events\.k8s\.io)?)$/;

/**
 * Written later by design: the paths of webhooks are replaced up to a minute after a call has failed, a certificate is
 * used when API servers have trusted it for two minutes, and counts of decisions are collected every ten seconds.
 */
const LATER = new Set([
  ...["secrets", "configmaps"],
  ...["mutating", "validating"].map((kind) => `${kind}webhookconfigurations.admissionregistration.k8s.io`),
  ...modules.flatMap(({ kinds }) => kinds.map(kindResource)),
]);
const MOST_LATER = 2;

/** Written when an override begins or ends. */
const OVERRIDDEN = new Set([GUARDS, "validatingadmissionpolicybindings.admissionregistration.k8s.io"]);

/** Hashing each line by itself would cost more than the lines. */
const LINES_AT_ONCE = 1_000;

export async function simulate(
  scenario: Scenario,
  trace?: (line: string) => void,
  prepare?: (world: World) => void,
): Promise<Outcome> {
  await issuePairs();
  const started = realNow();
  const hash = createHash("sha256");
  const lines: string[] = [];
  const hashLines = (): void => {
    hash.update(lines.join("\n"));
    lines.length = 0;
  };
  const world = new World(scenario, {
    trace: (line) => {
      if (lines.push(line) >= LINES_AT_ONCE) hashLines();
      trace?.(line);
    },
  });
  const { runtime } = world;
  watchInvariants(world);
  watchPods(world);
  prepare?.(world);
  await world.run();
  await world.untilRolledOut();
  const repaired = runtime.now;
  world.changeLast();
  const checked = async (ms: number, ...checks: ((world: World) => string | undefined)[]): Promise<void> => {
    await runtime.run(runtime.now + ms);
    for (const check of checks) {
      const why = runtime.failure === undefined ? check(world) : undefined;
      if (why !== undefined) runtime.fail(`${seconds(runtime.now - repaired)} after the last fault: ${why}`);
    }
  };
  await checked(
    RECONCILED_MS,
    notReady,
    wrongLeader,
    wrongNode,
    wrongWebhooks,
    wrongStatus,
    wrongPolicyStatus,
  );
  const waits = () =>
    wrongLedger(world) !== undefined || waitsForReapply(world) || exposedPath(world) !== undefined;
  while (runtime.now - repaired < RELEASED_MS && waits()) await checked(LOOK_EVERY_MS);
  await checked(0, wrongLedger, exposedPath);
  const written: string[] = [];
  const later = new Map<string, number>();
  const turns = overrideTurns(world, STABLE_MS);
  const stop = world.store.subscribe(({ resource, type, key, by }) => {
    if (by !== USHER && by !== WATCHDOG_USER) return;
    const times = (later.get(`${resource} ${key}`) ?? 0) + 1;
    later.set(`${resource} ${key}`, times);
    if (CONTINUOUS.test(resource) || (LATER.has(resource) && times <= MOST_LATER)) return;
    if (turns && OVERRIDDEN.has(resource)) return;
    written.push(`${type} ${resource} ${key} by ${by}`);
  });
  await checked(
    STABLE_MS,
    wrongNode,
    wrongStatus,
    wrongPolicyStatus,
    wrongCounts,
    wrongWebhooks,
    wrongLeader,
  );
  stop();
  if (written.length > 0) runtime.fail(`written although nothing happens: ${written.slice(0, 5).join(", ")}`);
  for (const user of ["ann", "bob"])
    if (runtime.failure === undefined) {
      const why = await wrongAnswer(world, user);
      if (why !== undefined) runtime.fail(why);
    }
  while (runtime.now - repaired < COUNTED_MS && wrongGroup(world) !== undefined) await checked(LOOK_EVERY_MS);
  await checked(0, wrongGroup, wrongOverride);
  for (const probe of [
    wrongNewPod,
    wrongNewNode,
    wrongRequester,
    wrongGranter,
    wrongRetained,
    wrongWithoutReplicas,
  ]) {
    const why = runtime.failure === undefined ? await probe(world) : undefined;
    if (why !== undefined) runtime.fail(why);
  }
  const { failure, events, now } = runtime;
  if (failure !== undefined) world.note(`FAILED ${failure}`);
  activate(undefined);
  hashLines();
  return {
    failure,
    events,
    simulatedMs: now,
    realMs: realNow() - started,
    digest: hash.digest("hex").slice(0, 16),
    world,
  };
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}

/** Without this fault or call, does it still fail? Tries halves, quarters, and at last each single one. */
export async function shrink(
  scenario: Scenario,
  fails: (scenario: Scenario) => Promise<boolean>,
): Promise<Scenario> {
  let best = scenario;
  for (const part of ["faults", "calls"] as const) {
    for (
      let size = Math.ceil(best[part].length / 2);
      size >= 1;
      size = size === 1 ? 0 : Math.ceil(size / 2)
    ) {
      for (let from = 0; from < best[part].length; ) {
        const smaller = { ...best, [part]: [...best[part].slice(0, from), ...best[part].slice(from + size)] };
        if (await fails(smaller)) best = smaller;
        else from += size;
      }
    }
  }
  return best;
}

export function summary({ seed, replicas, limit, calls, faults }: Scenario): string {
  const lines = [...calls, ...faults].toSorted((a, b) => a.at - b.at).map((one) => `  ${describe(one)}`);
  return [`seed ${seed}: ${replicas.length} replicas, limit ${limit}`, ...lines].join("\n");
}
