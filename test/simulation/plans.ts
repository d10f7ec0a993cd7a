/**
 * Plans by Sieve's rules, made from a reference run without faults: crash after each write, go back to an older view
 * after each call, hide pairs of events that cancel each other, and miss the events of each call. The end must be that of the reference run, with as
 * many creations and deletions.
 */
import { at, type Json, listAt, stringAt } from "../../src/core/json.ts";
import { annotationsOf, labelsOf, nameOf } from "../../src/core/kubernetes/object.ts";
import type { StoreEvent } from "./api-server/store.ts";
import { type Call, DOMAIN, type Fault, type Scenario, WATCHDOG } from "./scenario.ts";
import { type Outcome, simulate } from "./simulate.ts";
import { USHER } from "./world.ts";

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
  // A policy counts for workloads that come after every replica must have seen it.
  { at: 16_000, call: "set placement", name: "pool", value: "a" },
  { at: 62_000, call: "apply workload", namespace: "shop", name: "web", image: "example.com/c:1" },
  { at: 29_000, call: "set guard", mode: "Enable", closed: false },
  { at: 72_000, call: "apply workload", namespace: "shop", name: "web", image: "example.com/c:2" },
  { at: 82_000, call: "delete placement", name: "pool" },
  { at: 64_000, call: "set level", namespace: "shop", level: "baseline" },
];

/** Calls whose events cancel each other. */
const CANCELLING: readonly (readonly [number, number])[] = [
  [5, 6],
  [7, 8],
  [9, 10],
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

/** A rule is deleted soon after it was set: a leader that crashes in between finds its taints, and no rule. */
const BRIEF: Scenario = {
  ...REFERENCE,
  calls: [
    { at: 14_000, call: "set rule", name: "brief", pattern: ".*", value: "a", taint: true },
    { at: 15_500, call: "delete rule", name: "brief" },
  ],
  activeMs: 22_000,
};

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
const START: Scenario = { ...REFERENCE, limit: 1_000, calls: projects([3_000, 15_000]), activeMs: 8_000 };

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

export interface Plan {
  readonly name: string;
  readonly scenario: Scenario;
  /** Whether its end is that of the reference run. */
  readonly compared: boolean;
}

/** Counted and compared; the rest depends on who leads, and when. */
const COUNTED = /^(projectusages|nodes|secrets|(mutating|validating)webhookconfigurations)/;

interface End {
  readonly state: string;
  readonly counts: string;
}

/** What the objects say at the end, without times and versions, and how often usher created and deleted objects. */
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
      listAt(one, "spec", "entries").map((entry) => stringAt(entry, "name") ?? ""),
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
    groups: list("nodeschedulingpolicies.scheduling.openshift.io").map(
      (one) => at(one, "status", "groups") ?? null,
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
async function ended(scenario: Scenario): Promise<{ readonly outcome: Outcome; readonly end: End }> {
  const events: StoreEvent[] = [];
  const outcome = await simulate(scenario, undefined, (world) => {
    world.store.subscribe((event) => void events.push(event));
  });
  return { outcome, end: endOf(outcome, events) };
}

export async function plans(): Promise<{
  readonly all: readonly Plan[];
  readonly check: (plan: Plan) => Promise<string | undefined>;
}> {
  const { outcome, end } = await ended(REFERENCE);
  if (outcome.failure !== undefined) throw new Error(`the reference run: ${outcome.failure}`);
  const withFaults = (name: string, ...faults: Fault[]): Plan => ({
    name,
    scenario: { ...REFERENCE, faults },
    compared: true,
  });
  const { replicas } = REFERENCE;
  const { outcome: brief } = await ended(BRIEF);
  const briefs = brief.world.writes
    .filter(({ process, at }) => replicas.includes(process) && at >= 14_000)
    .map(({ process, what, number }) => ({
      name: `${process} crashes after ${what} (${number}), and the rule is deleted meanwhile`,
      scenario: {
        ...BRIEF,
        faults: [{ at: 3_100, process, fault: "crash at write", write: number, forMs: 4_000 } as const],
      },
      compared: false,
    }));
  const { outcome: absence } = await ended(ABSENCE);
  const absences = [undefined, ...absence.world.writes.filter(({ process }) => process === WATCHDOG)].map(
    (write) => ({
      name: `no replica is ready${write === undefined ? "" : `, and the watchdog crashes after ${write.what} (${write.number})`}`,
      scenario:
        write === undefined
          ? ABSENCE
          : {
              ...ABSENCE,
              faults: [
                ...ABSENCE.faults,
                {
                  at: 3_100,
                  process: WATCHDOG,
                  fault: "crash at write",
                  write: write.number,
                  forMs: 1_500,
                } as const,
              ],
            },
      compared: false,
    }),
  );
  const writes = (process: string) => outcome.world.writes.filter((one) => one.process === process);
  const crashes = [...replicas, WATCHDOG].flatMap((process) =>
    writes(process).map(({ what, number }) =>
      withFaults(`${process} crashes after ${what} (${number})`, {
        at: 3_100,
        process,
        fault: "crash at write",
        write: number,
        forMs: 1_500,
      }),
    ),
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
    // Placement fails open: a workload that is applied while no replica can be called is not placed.
    ...(call === "apply workload"
      ? []
      : [
          withFaults(
            `all replicas are cut off during call ${i + 1} (${call}), and its event is compacted`,
            ...everywhere((process) => ({ at: at - 50, process, fault: "cut", forMs: 2_000 })),
            { at: at + 1_500, process: "", fault: "compact" },
          ),
        ]),
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
  return {
    all: [
      { name: "replicas lose modules and get them again", scenario: ROLLOUT, compared: false },
      {
        name: "replicas lose modules and get them again, and an API server is behind",
        scenario: ROLLOUT_WITH_LAG,
        compared: false,
      },
      ...crashes,
      ...older,
      ...hidden,
      ...missed,
      ...blind,
      ...absences,
      ...briefs,
      { name: "the certificate is renewed", scenario: RENEWAL, compared: false },
      { name: "the wall clocks are set back by ten hours", scenario: CLOCKS, compared: false },
      { name: "the replicas start together", scenario: START, compared: false },
    ],
    check: async ({ scenario, compared }) => {
      const { outcome: other, end: reached } = await ended(scenario);
      if (other.failure !== undefined || !compared) return other.failure;
      if (reached.state !== end.state) return `the end differs: ${difference(reached.state, end.state)}`;
      return reached.counts === end.counts
        ? undefined
        : `creations and deletions differ: ${reached.counts}, reference ${end.counts}`;
    },
  };
}

/** The texts around their first difference. */
function difference(one: string, other: string): string {
  let i = 0;
  while (one[i] === other[i]) i++;
  const part = (text: string) => text.slice(Math.max(0, i - 80), i + 80);
  return `…${part(one)}… instead of …${part(other)}…`;
}
