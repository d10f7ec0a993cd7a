/**
 * Plans by Sieve's rules, made from a reference run without faults: crash after each write, stop before it, go back to an older view
 * after each call, hide pairs of events that cancel each other, and miss the events of each call. The end must be that of the reference run, with as
 * many creations and deletions.
 */
import { at, type Json, listAt, stringAt } from "../../src/core/json.ts";
import { annotationsOf, labelsOf, nameOf } from "../../src/core/kubernetes/object.ts";
import type { StoreEvent } from "./api-server/store.ts";
import { RULES } from "./checks.ts";
import { STANDING_IN, WITHOUT_FALLBACK } from "./configurations.ts";
import { type Call, DOMAIN, type Fault, FORGED, type Scenario, WARM_UP_MS, WATCHDOG } from "./scenario.ts";
import { type Outcome, simulate } from "./simulate.ts";
import { EXCEPTIONS, GUARDS, PLACEMENTS, PROTECTED } from "./tenants.ts";
import { LIMITS, USHER, type World } from "./world.ts";

/** Callers repeat what fails, and leave each other time: the end depends on the calls alone. */
const CALLS: readonly Call[] = [
  { at: 14_000, call: "create project", user: "ann", name: "p1" },
  { at: 18_000, call: "create project", user: "ann", name: "p2" },
  { at: 22_000, call: "join node", name: "edge-2" },
  { at: 26_000, call: "set rule", name: "all", pattern: ".*", value: "a", taint: true },
  { at: 32_000, call: "label node", name: "edge-1", key: `${DOMAIN}/stray`, value: "x" },
  { at: 38_000, call: "delete rule", name: "pool" },
  { at: 40_000, call: "set rule", name: "pool", pattern: "edge-.*", value: "a", taint: true },
  { at: 46_000, call: "remove node", name: "edge-2" },
  { at: 48_000, call: "join node", name: "edge-2" },
  { at: 54_000, call: "label node", name: "edge-1", key: `${DOMAIN}/pool`, value: "x" },
  { at: 56_000, call: "label node", name: "edge-1", key: `${DOMAIN}/pool`, value: "a" },
  { at: 60_000, call: "delete project", name: "p1" },
  { at: 66_000, call: "create project", user: "bob", name: "p3" },
  { at: 70_000, call: "edit webhooks", kind: "validating", how: "empty" },
  { at: 76_000, call: "set limit", max: 3 },
  { at: 80_000, call: "delete rule", name: "all" },
  // A policy counts for workloads that come after every replica must have seen it. It fails closed: a workload that is stored is placed.
  { at: 16_000, call: "set placement", name: "pool", value: "a", failurePolicy: "Fail" },
  { at: 62_000, call: "apply workload", namespace: "shop", name: "web", image: "example.com/c:1" },
  { at: 29_000, call: "set guard", mode: "Enable", closed: false },
  { at: 72_000, call: "apply workload", namespace: "shop", name: "web", image: "example.com/c:2" },
  { at: 82_000, call: "delete placement", name: "pool" },
  { at: 64_000, call: "set level", namespace: "shop", level: "baseline" },
  { at: 42_500, call: "set exception", namespaces: ["shop"] },
  { at: 44_000, call: "delete exception" },
  { at: 50_500, call: "set override", mode: "Inform", from: 0, until: 3_600_000 },
  { at: 52_000, call: "delete override" },
  { at: 77_500, call: "set placement", name: "dedicated", value: "a" },
  { at: 79_000, call: "delete placement", name: "dedicated" },
  { at: 33_500, call: "set limit", max: 1 },
  { at: 35_000, call: "set limit", max: 2 },
];

/** Calls whose events cancel each other. */
const CANCELLING: readonly (readonly [number, number])[] = [
  [5, 6],
  [7, 8],
  [9, 10],
  [22, 23],
  [24, 25],
  [26, 27],
  [28, 29],
];

export const REFERENCE: Scenario = {
  seed: 0,
  replicas: ["usher-a", "usher-b"],
  limit: 2,
  renewal: false,
  openable: false,
  clocks: {},
  calls: CALLS,
  faults: [],
  activeMs: 84_000,
  persistent: true,
};

/** No replica is ready for 80 s: the watchdog opens the hooks, and the replicas close them. */
const ABSENCE: Scenario = {
  ...REFERENCE,
  openable: true,
  calls: CALLS.slice(0, 1),
  faults: REFERENCE.replicas.map((process) => ({ at: 20_000, process, fault: "crash", forMs: 80_000 })),
  activeMs: 100_000,
};

/** Meanwhile the Secret of the certificate is deleted: opened hooks get the CA of the next one, or no replica becomes ready again. */
const ABSENCE_WITHOUT_SECRET: Scenario = {
  ...ABSENCE,
  calls: [...ABSENCE.calls, { at: 70_000, call: "delete certificate" }],
};

/** Meanwhile policies are deleted and a module is switched off, so that opened hooks are withdrawn. */
const ABSENCE_WITHOUT_HOOKS: Scenario = {
  ...ABSENCE_WITHOUT_SECRET,
  calls: [
    { at: 14_000, call: "set guard", mode: "Enable", closed: true },
    ...ABSENCE_WITHOUT_SECRET.calls,
    { at: 72_000, call: "delete guard" },
    { at: 75_000, call: "configure", configuration: "pod-os off" },
  ],
};

/** Meanwhile policies are written by which hooks become fail-closed, cover more, and are grouped otherwise. */
const ABSENCE_WITH_POLICIES: Scenario = {
  ...ABSENCE,
  openable: false,
  calls: [
    ...ABSENCE.calls,
    { at: 14_000, call: "set placement", name: "pool", value: "a", failurePolicy: "Fail" },
    {
      at: 70_000,
      call: "set placement",
      name: "dedicated",
      value: "a",
      failurePolicy: "Fail",
      targets: "Templates",
    },
    { at: 72_000, call: "set guard", mode: "Enable", closed: true },
    { at: 74_000, call: "set level", namespace: "shop", level: "baseline" },
  ],
};

/** Policies of the API server stand in for placement meanwhile. */
const STANDBY: Scenario = {
  ...ABSENCE,
  configuration: STANDING_IN,
  calls: [{ at: 14_000, call: "set placement", name: "pool", value: "a" }],
};

/** A policy changes, and workloads that are stored follow it. */
const DRIFT: Scenario = {
  ...REFERENCE,
  configuration: STANDING_IN,
  calls: [
    { at: 13_000, call: "set placement", name: "pool", value: "a" },
    { at: 16_000, call: "apply workload", namespace: "shop", name: "web", image: "example.com/c:1" },
    { at: 17_000, call: "apply workload", namespace: "shop", name: "api", image: "example.com/c:1" },
    // Two are repaired at a time.
    { at: 18_000, call: "apply workload", namespace: "shop", name: "job", image: "example.com/c:1" },
    { at: 30_000, call: "set placement", name: "pool", value: "b" },
  ],
  activeMs: 50_000,
};

/** A rule is deleted soon after it was set: a leader that crashes in between finds its taints, and no rule. */
const BRIEF: Scenario = {
  ...REFERENCE,
  calls: [
    { at: 14_000, call: "set rule", name: "brief", pattern: ".*", value: "a", taint: true },
    { at: 15_500, call: "delete rule", name: "brief" },
  ],
  activeMs: 22_000,
};

/** A rule with a taint comes and goes while the leader is frozen, and a node joins meanwhile. Found by seed 1874; before, the taint stayed. */
const UNLED: Scenario = {
  ...REFERENCE,
  calls: [
    { at: 13_300, call: "set rule", name: "unled", pattern: ".*", value: "a", taint: true },
    { at: 18_000, call: "join node", name: "edge-2" },
    { at: 21_000, call: "delete rule", name: "unled" },
  ],
  activeMs: 30_000,
};

/**
 * A replica without pod-os starts while the lease is deleted, and leads. The former leader, which has the module, writes
 * the status of an exception last. Found by seeds 266 and 20819; before, that status stayed.
 */
const FORMER_LEADER: Scenario = {
  ...REFERENCE,
  calls: [
    { at: 13_000, call: "set exception", namespaces: ["shop"] },
    { at: 18_250, call: "delete lease" },
    { at: 18_300, call: "configure", configuration: "pod-os off" },
    { at: 19_500, call: "set exception", namespaces: ["lab"] },
  ],
  faults: [{ at: 19_400, process: "usher-b", fault: "delay", forMs: 3_000, delayMs: 400 }],
  activeMs: 22_000,
};

/** A replica starts just before a silence ends: what it asked first is never answered. */
function silentStart(process: string): Scenario {
  return {
    ...REFERENCE,
    calls: CALLS.slice(0, 1),
    faults: [
      { at: 20_000, process, fault: "silence", forMs: 20_000 },
      { at: 38_500, process, fault: "crash", forMs: 1_000 },
    ],
    activeMs: 28_000,
  };
}

/** Projects are created all the time while the certificate is renewed, and one API server is twelve seconds behind. */
const RENEWAL: Scenario = {
  ...REFERENCE,
  renewal: true,
  limit: 1_000,
  calls: projects([25_000, 55_000], [140_000, 180_000]),
  faults: [{ at: 20_000, process: "", fault: "lag", forMs: 170_000, lagMs: 12_000 }],
  activeMs: 175_000,
};

/** Wall clocks are set back by ten hours: scans and counts of placement go on. Found by seed 44; before, they waited for ten hours. */
const CLOCKS: Scenario = {
  ...REFERENCE,
  calls: [
    { at: 13_000, call: "set placement", name: "pool", value: "a" },
    { at: 15_000, call: "apply workload", namespace: "shop", name: "web", image: "example.com/c:1" },
    { at: 50_000, call: "join node", name: "edge-2" },
  ],
  faults: REFERENCE.replicas.map((process) => ({
    at: 45_000,
    process,
    fault: "jump",
    byMs: -36_000_000,
  })),
  activeMs: 40_000,
};

/** Both replicas start without a Secret, and projects are created from the first moment. */
const START: Scenario = {
  ...REFERENCE,
  limit: 1_000,
  calls: [
    ...projects([3_000, 15_000]),
    { at: 16_000, call: "forge review", user: "ann", name: `${FORGED}1` },
  ],
  activeMs: 8_000,
};

/** The watchdog sees nothing for 35 s, in which replicas were ready again: what it had counted before does not count. */
const BLIND: Scenario = {
  ...REFERENCE,
  openable: true,
  calls: CALLS.slice(0, 1),
  faults: [
    ...REFERENCE.replicas.flatMap((process): Fault[] => [
      { at: 20_000, process, fault: "crash", forMs: 28_000 },
      { at: 62_000, process, fault: "crash", forMs: 25_000 },
    ]),
    { at: 44_000, process: WATCHDOG, fault: "freeze", forMs: 35_000, timersFirst: true },
  ],
  activeMs: 80_000,
};

/** A reservation that could not be written refuses no project. */
const UNWRITTEN: Scenario = {
  ...REFERENCE,
  limit: 1,
  persistent: false,
  calls: [0, 1, 2, 3].map((i) => ({ at: 20_000 + i, call: "create project", user: "ann", name: `p${i}` })),
  faults: REFERENCE.replicas.map((process) => ({ at: 19_000, process, fault: "read-only", forMs: 3_000 })),
  activeMs: 15_000,
};

/** Paths are replaced after a replica crashed, and one API server calls by the old ones for twelve seconds more. */
const OLD_PATHS: Scenario = {
  ...REFERENCE,
  limit: 1_000,
  calls: projects([60_000, 100_000]),
  faults: [
    { at: 20_000, process: "", fault: "lag", forMs: 85_000, lagMs: 12_000 },
    { at: 65_000, process: "usher-b", fault: "crash", forMs: 2_000 },
  ],
  activeMs: 90_000,
};

/** A node becomes a protected one, and no replica sees it. */
const NEWLY_PROTECTED: Scenario = {
  ...REFERENCE,
  configuration: WITHOUT_FALLBACK,
  persistent: false,
  calls: [
    { at: 13_000, call: "set guard", mode: "Enable", closed: false },
    { at: 20_000, call: "label node", name: "edge-1", key: PROTECTED, value: "" },
    {
      at: 21_000,
      call: "create pod",
      user: "ann",
      namespace: "shop",
      name: "late",
      app: "job",
      node: "edge-1",
    },
  ],
  faults: REFERENCE.replicas.map((process) => ({
    at: 18_000,
    process,
    fault: "stall",
    forMs: 10_000,
    resource: "nodes",
  })),
  activeMs: 20_000,
};

/** A tenant's pod runs on a node that is protected later. */
const STAYING: Scenario = {
  ...REFERENCE,
  configuration: WITHOUT_FALLBACK,
  calls: [
    {
      at: 13_000,
      call: "create pod",
      user: "ann",
      namespace: "shop",
      name: "old",
      app: "job",
      node: "core-1",
    },
    { at: 16_000, call: "set guard", mode: "Enable", closed: false },
  ],
  activeMs: 10_000,
};

/** The ledger of taints can't be read for longer than usher tries. */
const UNREADABLE: Scenario = {
  ...REFERENCE,
  calls: [{ at: 20_000, call: "set rule", name: "all", pattern: ".*", value: "a", taint: true }],
  faults: REFERENCE.replicas.map((process) => ({
    at: 19_900,
    process,
    fault: "busy",
    forMs: 32_000,
    resource: "configmaps",
  })),
  activeMs: 42_000,
};

/** A new replica can't announce its hooks when it starts, and nothing changes after that. */
const UNANNOUNCED: Scenario = {
  ...REFERENCE,
  calls: [
    { at: 14_000, call: "set guard", mode: "Enable", closed: false },
    { at: 20_000, call: "roll out", replica: "usher-b" },
  ],
  faults: [{ at: 20_001, process: "usher-b", fault: "read-only", forMs: 6_000 }],
  activeMs: 20_000,
};

/** Connections break all the time while a replica reads everything. */
function interrupted(process: string): Scenario {
  return {
    ...REFERENCE,
    calls: CALLS.slice(0, 1),
    faults: [
      { at: 20_000, process, fault: "crash", forMs: 1_000 },
      // Events of a list come one after the other.
      { at: 21_000, process, fault: "delay", forMs: 9_000, delayMs: 200 },
      ...range(21_000, 29_700, 300).map((at): Fault => ({ at, process, fault: "reset" })),
    ],
    activeMs: 20_000,
  };
}

/** A node is written by others whenever its rules change, so that usher's writes conflict, again and again. */
const CONFLICTS: Scenario = {
  ...REFERENCE,
  calls: range(13_000, 133_000, 4_000).flatMap((at, i): Call[] => [
    { at, call: "churn node", name: "edge-1", writes: 200, what: "status" },
    { at: at + 100, call: "set rule", name: "pool", pattern: "edge-.*", value: `v${i}`, taint: false },
  ]),
  activeMs: 125_000,
};

/** The gate is switched off: a stored workload keeps its spec.os where new ones lose it. */
const STORED_OS: Scenario = {
  ...REFERENCE,
  calls: [
    {
      at: 13_000,
      call: "apply workload",
      namespace: "shop",
      name: "web",
      image: "example.com/c:1",
      os: true,
    },
    { at: 14_000, call: "configure", configuration: "the gate of pod-os off" },
    {
      at: 40_000,
      call: "apply workload",
      namespace: "shop",
      name: "web",
      image: "example.com/c:2",
      os: true,
    },
  ],
  activeMs: 35_000,
};

function projects(...spans: readonly (readonly [number, number])[]): Call[] {
  return spans
    .flatMap(([from, to]) => range(from, to, 400))
    .map((at, i) => ({ at, call: "create project", user: "ann", name: `r${i}` }));
}

/** Replicas are rolled out without modules, and with them again, while pods are created all the time. */
const ROLLOUT: Scenario = {
  ...REFERENCE,
  calls: [
    { at: 10_000, call: "set placement", name: "pool", value: "a", failurePolicy: "Fail" },
    { at: 10_000, call: "set guard", mode: "Enable", closed: true },
    { at: 20_000, call: "configure", configuration: "pod-os off" },
    { at: 45_000, call: "configure", configuration: "base" },
    { at: 70_000, call: "configure", configuration: "placement off" },
    { at: 95_000, call: "configure", configuration: "base" },
    ...range(18_000, 120_000, 300).map(
      (at, i): Call => ({
        at,
        call: "create pod",
        user: "ann",
        namespace: "shop",
        name: `pod-${i}`,
        app: "web",
      }),
    ),
  ],
  activeMs: 110_000,
  persistent: false,
};

/** The same, and one API server calls by the webhook configurations of twelve seconds ago: hooks that replicas do not have any more. */
const ROLLOUT_WITH_LAG: Scenario = {
  ...ROLLOUT,
  faults: [{ at: 15_000, process: "", fault: "lag", forMs: 110_000, lagMs: 12_000 }],
};

function range(from: number, to: number, step: number): number[] {
  return Array.from({ length: Math.floor((to - from) / step) }, (_, i) => from + i * step);
}

/** A run that is made on purpose. */
export interface Plan {
  readonly name: string;
  /** Why it failed, if it did. */
  readonly check: (trace?: (line: string) => void) => Promise<string | undefined>;
}

/** Counted and compared; the rest depends on who leads, and when. */
const COUNTED =
  /^(projectusages|nodes|secrets|replicasets|(mutating|validating)(webhookconfigurations|admissionpolic))/;

interface End {
  readonly state: string;
  readonly counts: string;
}

/** What the objects say at the end, without times, versions and messages, and how often usher created and deleted objects. */
function endOf({ world }: Outcome, events: readonly StoreEvent[]): End {
  const list = (resource: string) => world.store.list(resource).map(({ object }) => object);
  const state: Json = {
    nodes: list("nodes").map((node) => [
      nameOf(node),
      labelsOf(node) ?? {},
      listAt(node, "spec", "taints"),
      Object.keys(annotationsOf(node) ?? {}).sort(),
    ]),
    projects: list("namespaces").map((one) => [
      nameOf(one),
      stringAt(one, "metadata", "annotations", "openshift.io/requester") ?? "",
    ]),
    ledgers: list("projectusages.usher.dev").map((one) => [
      nameOf(one),
      listAt(one, "spec", "entries")
        .map((entry) => stringAt(entry, "name") ?? "")
        .sort(),
    ]),
    webhooks: ["mutating", "validating"].flatMap((kind) =>
      list(`${kind}webhookconfigurations.admissionregistration.k8s.io`).map((one) =>
        listAt(one, "webhooks").map((entry) => [
          at(entry, "name") ?? "",
          at(entry, "failurePolicy") ?? "",
          at(entry, "rules") ?? [],
        ]),
      ),
    ),
    workloads: list("replicasets.apps").map((one) => [nameOf(one), at(one, "spec", "template") ?? null]),
    managed: ["policies", "policybindings"].flatMap((plural) =>
      list(`validatingadmission${plural}.admissionregistration.k8s.io`).map((one) => [
        plural,
        nameOf(one),
        one["spec"] ?? null,
      ]),
    ),
    statuses: [GUARDS, PLACEMENTS, EXCEPTIONS, RULES, LIMITS].flatMap((resource) =>
      list(resource).map((one) => [
        resource,
        nameOf(one),
        at(one, "status", "groups") ?? null,
        at(one, "status", "matchedNodes") ?? null,
        listAt(one, "status", "conditions")
          .map((condition) => ["type", "status", "reason"].map((field) => stringAt(condition, field) ?? ""))
          .sort(),
      ]),
    ),
    taints: list("configmaps")
      .filter((one) => nameOf(one) === "usher-node-labels")
      .map((one) => stringAt(one, "data", "taints")?.split("\n").sort() ?? []),
  };
  const counts = new Map<string, number>();
  for (const { type, resource, by } of events)
    if (by === USHER && type !== "MODIFIED" && COUNTED.test(resource))
      counts.set(`${type} ${resource}`, (counts.get(`${type} ${resource}`) ?? 0) + 1);
  return { state: JSON.stringify(state), counts: JSON.stringify([...counts].sort()) };
}

/** Runs a scenario to its end, and takes down what usher did. */
async function ended(
  scenario: Scenario,
  trace?: (line: string) => void,
): Promise<{ readonly outcome: Outcome; readonly end: End }> {
  const events: StoreEvent[] = [];
  const outcome = await simulate(scenario, trace, (world) => {
    world.store.subscribe((event) => void events.push(event));
  });
  return { outcome, end: endOf(outcome, events) };
}

/** A plan that has no other run to be compared with. */
function keepsPromises(name: string, scenario: Scenario): Plan {
  return { name, check: async (trace) => failureOf(await simulate(scenario, trace)) };
}

function failureOf({ failure, world }: Outcome): string | undefined {
  const [missed] = world.missedCrashes;
  return (
    failure ?? (missed === undefined ? undefined : `${missed} never made the write after which it crashes`)
  );
}

/** Without those of the probes at the end. */
function writesOf({ world }: Outcome): World["writes"] {
  return world.writes.filter(({ at }) => at < WARM_UP_MS + world.scenario.activeMs);
}

/** At the Nth write of the process, from its start on. */
function crashAtWrite(process: string, write: number, forMs: number): Fault {
  return { at: 0, process, fault: "crash at write", write, forMs };
}

/** Objects that the leader applies in whatever version they are. */
const FORCED = /admissionregistration|configmaps\/usher-node-labels|\/secrets\//;

/** Another replica leads by then. */
const SUSPENDED_MS = 25_000;

/** A run without further faults, and plans that must reach its end with as many creations and deletions. */
async function referenceOf(scenario: Scenario) {
  const { outcome, end } = await ended(scenario);
  if (outcome.failure !== undefined) throw new Error(`a reference run: ${outcome.failure}`);
  const withFaults = (name: string, ...faults: readonly Fault[]): Plan => ({
    name,
    check: async (trace) => {
      const all = [...scenario.faults, ...faults];
      const { outcome: other, end: reached } = await ended({ ...scenario, faults: all }, trace);
      const failure = failureOf(other);
      if (failure !== undefined) return failure;
      if (reached.state !== end.state) return `the end differs: ${difference(reached.state, end.state)}`;
      return reached.counts === end.counts
        ? undefined
        : `creations and deletions differ: ${reached.counts}, reference ${end.counts}`;
    },
  });
  return { writes: writesOf(outcome), withFaults };
}

export async function plans(): Promise<readonly Plan[]> {
  const { writes, withFaults } = await referenceOf(REFERENCE);
  const { replicas } = REFERENCE;
  const brief = await referenceOf(BRIEF);
  const briefs = brief.writes
    .filter(({ process, at }) => replicas.includes(process) && at >= 14_000)
    .map(({ process, what, number }) =>
      brief.withFaults(
        `${process} crashes after ${what} (${number}), and the rule is deleted meanwhile`,
        crashAtWrite(process, number, 4_000),
      ),
    );
  const absence = await referenceOf(ABSENCE);
  const absences = absence.writes
    .filter(({ process }) => process === WATCHDOG)
    .map(({ what, number }) =>
      absence.withFaults(
        `no replica is ready, and the watchdog crashes after ${what} (${number})`,
        crashAtWrite(WATCHDOG, number, 1_500),
      ),
    );
  const renewal = await referenceOf(RENEWAL);
  const renewals = renewal.writes
    .filter(({ what, at }) => at > 20_000 && /\/secrets\/|webhookconfigurations/.test(what))
    .map(({ process, what, number }) =>
      renewal.withFaults(
        `${process} crashes after ${what} (${number}), and the certificate is renewed`,
        crashAtWrite(process, number, 4_000),
      ),
    );
  const drift = await referenceOf(DRIFT);
  const repairs = drift.writes.filter(({ what }) => what.includes("/replicasets/"));
  if (repairs.length < 2) throw new Error("drift is not repaired");
  const drifts = repairs.map(({ process, what, number }) =>
    drift.withFaults(
      `${process} crashes after ${what} (${number}), which repairs drift`,
      crashAtWrite(process, number, 4_000),
    ),
  );
  const crashes = [...replicas, WATCHDOG].flatMap((process) =>
    writes
      .filter((one) => one.process === process)
      .map(({ what, number }) =>
        withFaults(`${process} crashes after ${what} (${number})`, crashAtWrite(process, number, 1_500)),
      ),
  );
  const suspensions = writes
    // Before the end of the start, webhooks are not registered while the leader is suspended.
    .filter(({ process, what, at }) => replicas.includes(process) && FORCED.test(what) && at >= WARM_UP_MS)
    .map(({ process, what, number, sentAfter }) =>
      withFaults(`${process} is suspended before ${what} (${number})`, {
        at: 0,
        process,
        fault: "freeze at request",
        request: sentAfter,
        forMs: SUSPENDED_MS,
      }),
    );
  const older = CALLS.flatMap((call, i) =>
    replicas.map((process) =>
      withFaults(
        `${process} sees the state before call ${i + 1} (${call.call}) again`,
        { at: call.at - 100, process: "", fault: "lag", forMs: 6_000, lagMs: 6_000 },
        { at: call.at + 1_000, process, fault: "switch" },
        { at: call.at + 1_500, process, fault: "crash", forMs: 500 },
      ),
    ),
  );
  const hidden = CANCELLING.flatMap(([from, to]) =>
    replicas.map((process) =>
      withFaults(
        `${process} does not see calls ${from + 1} and ${to + 1}, which cancel each other`,
        { at: (CALLS[from] as Call).at - 100, process, fault: "stall", forMs: 3_000 },
        { at: (CALLS[to] as Call).at + 400, process: "", fault: "compact" },
        { at: (CALLS[to] as Call).at + 500, process, fault: "reset" },
      ),
    ),
  );
  const everywhere = (fault: (process: string) => Fault): Fault[] => replicas.map(fault);
  const missed = CALLS.flatMap(({ at, call }, i) => [
    withFaults(
      `all replicas are cut off during call ${i + 1} (${call}), and its event is compacted`,
      ...everywhere((process) => ({ at: at - 50, process, fault: "cut", forMs: 2_000 })),
      { at: at + 1_500, process: "", fault: "compact" },
    ),
    withFaults(
      `all connections are half-open before call ${i + 1} (${call})`,
      ...everywhere((process) => ({ at: at - 50, process, fault: "half-open" })),
    ),
  ]);
  const blind = ["namespaces", "projectusages", "nodes", "labels"].map((resource) =>
    withFaults(
      `no replica sees events of ${resource} for a minute`,
      ...everywhere((process) => ({ at: 13_000, process, fault: "stall", forMs: 60_000, resource })),
    ),
  );
  return [
    keepsPromises("replicas lose modules and get them again", ROLLOUT),
    keepsPromises("replicas lose modules and get them again, and an API server is behind", ROLLOUT_WITH_LAG),
    ...crashes,
    ...suspensions,
    ...older,
    ...hidden,
    ...missed,
    ...blind,
    keepsPromises("no replica is ready", ABSENCE),
    keepsPromises("no replica is ready, and the certificate is deleted meanwhile", ABSENCE_WITHOUT_SECRET),
    keepsPromises("no replica is ready, and hooks are withdrawn meanwhile", ABSENCE_WITHOUT_HOOKS),
    keepsPromises("no replica is ready, and policies are written meanwhile", ABSENCE_WITH_POLICIES),
    ...absences,
    keepsPromises("no replica is ready, and policies stand in for placement", STANDBY),
    keepsPromises("drift is repaired", DRIFT),
    ...drifts,
    ...briefs,
    ...replicas.map((process) =>
      keepsPromises(`${process} is frozen while a rule with a taint comes and goes, and a node joins`, {
        ...UNLED,
        faults: [{ at: 13_000, process, fault: "freeze", forMs: 25_000, timersFirst: false }],
      }),
    ),
    ...replicas.map((process) =>
      keepsPromises(`${process} starts, and its first requests are not answered`, silentStart(process)),
    ),
    keepsPromises("a former leader writes a status last", FORMER_LEADER),
    keepsPromises("the certificate is renewed", RENEWAL),
    ...renewals,
    keepsPromises("the wall clocks are set back by ten hours", CLOCKS),
    keepsPromises("the replicas start together", START),
    keepsPromises("reservations can't be written", UNWRITTEN),
    keepsPromises("paths are replaced, and an API server is behind", OLD_PATHS),
    keepsPromises("a node becomes protected, and no replica sees it", NEWLY_PROTECTED),
    keepsPromises("the ledger of taints can't be read", UNREADABLE),
    keepsPromises("a new replica can't announce its hooks", UNANNOUNCED),
    keepsPromises("a tenant's pod runs on a node that is protected later", STAYING),
    ...replicas.map((process) =>
      keepsPromises(`connections of ${process} break while it starts`, interrupted(process)),
    ),
    keepsPromises("a node is written by others whenever its rules change", CONFLICTS),
    keepsPromises("the watchdog sees nothing while replicas come and go", BLIND),
    keepsPromises("a stored workload has spec.os when its gate is switched off", STORED_OS),
  ];
}

/** The texts around their first difference. */
export function difference(one: string, other: string): string {
  let i = 0;
  while (one[i] === other[i]) i++;
  const part = (text: string) => text.slice(Math.max(0, i - 80), i + 80);
  return `…${part(one)}… instead of …${part(other)}…`;
}
