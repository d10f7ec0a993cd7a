/** A scenario: who calls what, and what breaks, each at its time. Pure data, made from a seed, so that it can be shrunk. */
import type { Configuration } from "../../src/cli/configuration/configuration.ts";
import { CONFIGURATIONS, STANDING_IN, WITHOUT_FALLBACK } from "./configurations.ts";
import { randomStream } from "./runtime.ts";

/** What people and other programs do. `at`: milliseconds from the start. */
export type Call = { readonly at: number } & (
  | { readonly call: "create project"; readonly user: string; readonly name: string; readonly dryRun?: true }
  | { readonly call: "delete project"; readonly name: string }
  /** Someone else than an API server sends a replica a review of a project. */
  | { readonly call: "forge review"; readonly user: string; readonly name: string }
  | { readonly call: "set limit"; readonly max: number }
  | { readonly call: "join node"; readonly name: string }
  | { readonly call: "remove node"; readonly name: string }
  /** Anyone but usher sets a label or removes it. */
  | {
      readonly call: "label node";
      readonly name: string;
      readonly key: string;
      readonly value: string | null;
    }
  /** Others write the node every few milliseconds: its status, or a taint that comes and goes. */
  | {
      readonly call: "churn node";
      readonly name: string;
      readonly writes: number;
      readonly what: "status" | "taint";
    }
  | { readonly call: "taint node"; readonly name: string; readonly key: string }
  | {
      readonly call: "set rule";
      readonly name: string;
      readonly pattern: string;
      readonly value: string;
      readonly taint: boolean;
    }
  | { readonly call: "delete rule"; readonly name: string }
  | { readonly call: "set ownership" }
  | { readonly call: "delete ownership" }
  /** An administrator spoils a webhook configuration, or deletes it. */
  | {
      readonly call: "edit webhooks";
      readonly kind: "mutating" | "validating";
      readonly how: "open" | "empty" | "delete";
    }
  | { readonly call: "delete lease" }
  | { readonly call: "delete certificate" }
  /** A replica is replaced by one of another name, which drains first. */
  | { readonly call: "roll out"; readonly replica: string }
  /** An administrator gives all replicas another configuration. */
  | { readonly call: "configure"; readonly configuration: string }
  | {
      readonly call: "create pod";
      readonly user: string;
      readonly namespace: string;
      readonly name: string;
      readonly app: string;
      /** It selects a pool of its own. */
      readonly own?: boolean;
      readonly node?: string;
      /** It tolerates every taint. */
      readonly tolerant?: boolean;
      /** It uses the processes of its node, which the level baseline forbids. */
      readonly host?: boolean;
      readonly os?: boolean;
    }
  | { readonly call: "delete pod"; readonly namespace: string; readonly name: string }
  /** The scheduler binds it. */
  | { readonly call: "bind pod"; readonly namespace: string; readonly name: string; readonly node: string }
  /** A ReplicaSet is created, or its manifest is applied again. */
  | {
      readonly call: "apply workload";
      readonly namespace: string;
      readonly name: string;
      readonly image: string;
      readonly own?: boolean;
      readonly os?: boolean;
    }
  | { readonly call: "reapply workload"; readonly namespace: string; readonly name: string }
  | {
      readonly call: "set placement";
      readonly name: "pool" | "dedicated";
      readonly value: string;
      readonly onUpdate?: "Inject" | "Restore";
      readonly enforcement?: "Refuse";
      readonly failurePolicy?: "Fail" | "Ignore";
      /** @default pods and templates */
      readonly targets?: "Templates";
    }
  | { readonly call: "delete placement"; readonly name: "pool" | "dedicated" }
  /** Protected nodes; `closed`: bindings to them fail while usher does not answer. */
  | { readonly call: "set guard"; readonly mode: "Disable" | "Inform" | "Enable"; readonly closed: boolean }
  | { readonly call: "delete guard" }
  /** The mode of protected nodes is weakened for a while. `from`, `until`: milliseconds from the start. */
  | {
      readonly call: "set override";
      readonly mode: "Disable" | "Inform";
      readonly from: number;
      readonly until: number;
    }
  | { readonly call: "delete override" }
  /** The enforced level of Pod Security. */
  | { readonly call: "set level"; readonly namespace: string; readonly level: string | null }
  | { readonly call: "set exception"; readonly namespaces: readonly string[] }
  | { readonly call: "delete exception" }
);

/** What breaks. A fault with a duration ends after `forMs`. */
export type Fault = { readonly at: number; readonly process: string } & (
  | { readonly fault: "crash"; readonly forMs: number }
  /** The process crashes when its write of this number, from `at` on, has been processed. Leases and events do not count. */
  | { readonly fault: "crash at write"; readonly write: number; readonly forMs: number }
  | { readonly fault: "freeze"; readonly forMs: number; readonly timersFirst: boolean }
  /** The process stops before it gets the answer to its request of this number, of all since the start of the world. */
  | { readonly fault: "freeze at request"; readonly request: number; readonly forMs: number }
  | { readonly fault: "delay"; readonly forMs: number; readonly delayMs: number }
  | { readonly fault: "cut"; readonly forMs: number }
  | { readonly fault: "silence"; readonly forMs: number }
  /** Watches of this resource, or all, get no events. */
  | { readonly fault: "stall"; readonly forMs: number; readonly resource?: string }
  | { readonly fault: "lose answers"; readonly forMs: number }
  /** The API server answers half of the requests 429, or all of those about this resource. */
  | { readonly fault: "busy"; readonly forMs: number; readonly resource?: string }
  | { readonly fault: "unsure"; readonly forMs: number }
  /** etcd has no leader: reads are answered, writes fail. */
  | { readonly fault: "read-only"; readonly forMs: number }
  | { readonly fault: "half-open" }
  | { readonly fault: "reset" }
  /** Its connections lead to the other API server. */
  | { readonly fault: "switch" }
  | { readonly fault: "jump"; readonly byMs: number }
  /** etcd forgets its history, and watches end. */
  | { readonly fault: "compact" }
  /** API servers write a project this much later than they have admitted it. */
  | { readonly fault: "slow writes"; readonly forMs: number; readonly delayMs: number }
  /** The second API server sees writes this much later. */
  | { readonly fault: "lag"; readonly forMs: number; readonly lagMs: number }
);

export interface Scenario {
  readonly seed: number;
  readonly replicas: readonly string[];
  /** The projects that a user may have at the start. */
  readonly limit: number;
  /** Whether the stored certificate is due for renewal half a minute after the start. */
  readonly renewal: boolean;
  /** Whether the watchdog may open the hooks of project-limit. */
  readonly openable: boolean;
  /** The API server that each process talks to at first; only the second one may lag. @default the first one */
  readonly servers?: Readonly<Record<string, number>>;
  /** The clock of each process: rate, and error of the wall clock. */
  readonly clocks: Readonly<Record<string, { readonly rate: number; readonly wallOffset: number }>>;
  readonly calls: readonly Call[];
  readonly faults: readonly Fault[];
  /** The end of calls and faults. */
  readonly activeMs: number;
  /** Whether callers repeat what failed: then the end does not depend on faults. @default false */
  readonly persistent?: boolean;
  /** API servers have no streaming lists, and pages have two items. @default false */
  readonly paged?: boolean;
  /** Of the replicas at the start. @default that with all modules */
  readonly configuration?: Configuration;
}

export const DOMAIN = "sim.example.com";
export const WATCHDOG = "watchdog";

/** The replicas are ready by then, and the objects of the start exist. */
export const WARM_UP_MS = 12_000;

const USERS = ["ann", "bob"];
const NODES = ["edge-1", "edge-2", "core-1"];
const RULES = [
  { name: "pool", pattern: "edge-.*" },
  { name: "all", pattern: ".*" },
];
const OTHERS = ["other.example.com/rack", "kubernetes.io/note"];

/** The scenario of a seed. */
export function scenarioOf(seed: number): Scenario {
  const random = randomStream(`scenario ${seed}`);
  const below = (n: number): number => Math.floor(random() * n);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  const chance = (p: number): boolean => random() < p;
  const replicas = chance(0.7) ? ["usher-a", "usher-b"] : ["usher-a", "usher-b", "usher-c"];
  const processes = [...replicas, WATCHDOG];
  const clocks = Object.fromEntries(
    processes.map((name) => [
      name,
      {
        rate: chance(0.5) ? 1 : 0.95 + 0.1 * random(),
        wallOffset: chance(0.5) ? 0 : Math.round((random() - 0.5) * 7_200_000),
      },
    ]),
  );
  const activeMs = 10_000 + below(30_000);
  const time = (): number => WARM_UP_MS + below(activeMs);
  const limit = 1 + below(3);
  const calls: Call[] = [];
  // Bursts: requests at nearly the same time are what races.
  const bursts = 1 + below(3);
  let projects = 0;
  for (let i = 0; i < bursts; i++) {
    const at = time();
    const user = pick(USERS);
    for (let k = 1 + below(4); k > 0; k--)
      calls.push({
        at: at + below(chance(0.7) ? 40 : 3_000),
        call: "create project",
        user,
        name: `p${chance(0.2) ? below(projects + 1) : ++projects}`,
      });
  }
  const weighted: readonly (readonly [number, () => Call])[] = [
    [3, () => ({ at: time(), call: "create project", user: pick(USERS), name: `p${++projects}` })],
    [4, () => ({ at: time(), call: "delete project", name: `p${1 + below(projects + 1)}` })],
    [3, () => ({ at: time(), call: "join node", name: pick(NODES) })],
    [2, () => ({ at: time(), call: "remove node", name: pick(NODES) })],
    [
      3,
      () => ({
        at: time(),
        call: "label node",
        name: pick(NODES),
        key: `${DOMAIN}/${pick(["pool", "all", "stray"])}`,
        value: chance(0.3) ? null : pick(["x", "y"]),
      }),
    ],
    [
      2,
      () => ({
        at: time(),
        call: "label node",
        name: pick(NODES),
        key: pick(OTHERS),
        value: chance(0.3) ? null : pick(["x", "y"]),
      }),
    ],
    [
      2,
      () => ({
        at: time(),
        call: "churn node",
        name: pick(NODES),
        writes: 20 + below(60),
        what: pick(["status", "taint"] as const),
      }),
    ],
    [1, () => ({ at: time(), call: "taint node", name: pick(NODES), key: "other.example.com/maintenance" })],
    [
      3,
      () => ({ at: time(), call: "set rule", ...pick(RULES), value: pick(["a", "b"]), taint: chance(0.5) }),
    ],
    [2, () => ({ at: time(), call: "delete rule", name: pick(RULES).name })],
    [1, () => ({ at: time(), call: "set ownership" })],
    [1, () => ({ at: time(), call: "delete ownership" })],
    [1, () => ({ at: time(), call: "set limit", max: 1 + below(3) })],
    [
      1,
      () => ({
        at: time(),
        call: "edit webhooks",
        kind: pick(["mutating", "validating"] as const),
        how: pick(["open", "empty", "delete"] as const),
      }),
    ],
    [1, () => ({ at: time(), call: "delete lease" })],
    [1, () => ({ at: time(), call: "delete certificate" })],
    [1, () => ({ at: time(), call: "roll out", replica: pick(replicas) })],
  ];
  for (let i = 4 + below(10); i > 0; i--) calls.push(choose(weighted, random)());
  calls.push(...callsAboutPods({ time, below, pick, chance, random }));
  // Conflicts: a node is written by others while its rule changes.
  if (chance(0.5)) {
    const at = time();
    calls.push({
      at,
      call: "churn node",
      name: "edge-1",
      writes: 80,
      what: pick(["status", "taint"] as const),
    });
    calls.push({
      at: at + 100 + below(300),
      call: "set rule",
      name: "pool",
      pattern: "edge-.*",
      value: pick(["a", "b"]),
      taint: chance(0.7),
    });
  }
  const faults: Fault[] = [];
  const forMs = (): number => (chance(0.6) ? 500 + below(5_000) : 5_000 + below(20_000));
  const process = (): string => (chance(0.85) ? pick(replicas) : WATCHDOG);
  // From a second to half a day: most jumps are corrections of seconds.
  const jump = (): number => Math.round((chance(0.5) ? 1 : -1) * 1_000 * 43_200 ** random());
  const breaking: readonly (readonly [number, () => Fault])[] = [
    [3, () => ({ at: time(), process: process(), fault: "crash", forMs: forMs() })],
    [
      3,
      () => ({
        at: time(),
        process: pick(replicas),
        fault: "crash at write",
        write: 1 + below(6),
        forMs: forMs(),
      }),
    ],
    [
      3,
      () => ({ at: time(), process: process(), fault: "freeze", forMs: forMs(), timersFirst: chance(0.5) }),
    ],
    [
      2,
      () => ({ at: time(), process: process(), fault: "delay", forMs: forMs(), delayMs: 200 + below(6_000) }),
    ],
    [2, () => ({ at: time(), process: process(), fault: "cut", forMs: forMs() })],
    [2, () => ({ at: time(), process: process(), fault: "silence", forMs: forMs() })],
    [3, () => ({ at: time(), process: pick(replicas), fault: "stall", forMs: forMs() })],
    [3, () => ({ at: time(), process: process(), fault: "lose answers", forMs: forMs() })],
    [2, () => ({ at: time(), process: process(), fault: "busy", forMs: forMs() })],
    [2, () => ({ at: time(), process: process(), fault: "unsure", forMs: forMs() })],
    [3, () => ({ at: time(), process: process(), fault: "read-only", forMs: forMs() })],
    [1, () => ({ at: time(), process: process(), fault: "half-open" })],
    [1, () => ({ at: time(), process: process(), fault: "reset" })],
    [2, () => ({ at: time(), process: process(), fault: "switch" })],
    [
      1,
      () => ({
        at: time(),
        process: process(),
        fault: "jump",
        byMs: jump(),
      }),
    ],
    [1, () => ({ at: time(), process: "", fault: "compact" })],
    [2, () => ({ at: time(), process: "", fault: "lag", forMs: forMs(), lagMs: 200 + below(8_000) })],
  ];
  for (let i = chance(0.1) ? 0 : 1 + below(6); i > 0; i--) faults.push(choose(breaking, random)());
  // Slow answers: a rule changes again while nodes are processed, and requests of a user overlap.
  if (chance(0.3)) {
    const at = time();
    for (const slow of replicas)
      faults.push({ at, process: slow, fault: "delay", forMs: 6_000, delayMs: 500 + below(1_500) });
    for (const value of ["b", "a", "b"].slice(below(2)))
      calls.push({
        at: at + 200 + below(4_000),
        call: "set rule",
        name: "pool",
        pattern: "edge-.*",
        value,
        taint: false,
      });
    for (let k = 2; k > 0; k--)
      calls.push({ at: at + below(2_000), call: "create project", user: "ann", name: `p${++projects}` });
  }
  // The wall clocks are set back, and then policies change.
  if (chance(0.1)) {
    const at = WARM_UP_MS + 1_000;
    calls.push({ at, call: "set placement", name: "pool", value: "a" });
    calls.push({
      at: at + 2_000,
      call: "apply workload",
      namespace: "shop",
      name: "web",
      image: "example.com/c:1",
    });
    for (const one of replicas)
      faults.push({
        at: at + 4_000 + below(5_000),
        process: one,
        fault: "jump",
        byMs: -3_600_000 * (1 + below(12)),
      });
  }
  const [renewal, openable, paged] = [chance(0.15), chance(0.3), chance(0.15)];
  // Admitted projects are stored much later, and some are only tried.
  if (chance(0.2)) {
    const at = time();
    faults.push({ at, process: "", fault: "slow writes", forMs: 8_000, delayMs: 1_000 + below(24_000) });
    for (let k = 3; k > 0; k--)
      calls.push({ at: at + below(8_000), call: "create project", user: "ann", name: `p${++projects}` });
  }
  if (chance(0.2))
    for (let k = 2; k > 0; k--)
      calls.push({
        at: time(),
        call: "create project",
        user: pick(USERS),
        name: `${DRY_RUN}${k}`,
        dryRun: true,
      });
  // No replica is ready for longer than the watchdog waits.
  const outageMs = chance(0.04) ? 50_000 + below(40_000) : 0;
  if (outageMs > 0) {
    const at = time();
    for (const one of replicas)
      faults.push({ at: at + below(1_000), process: one, fault: "crash", forMs: outageMs });
  }
  // A group is protected, and pods are created on its node.
  if (chance(0.25)) {
    const at = time();
    calls.push({ at, call: "set guard", mode: "Enable", closed: chance(0.3) });
    for (let k = 2; k > 0; k--)
      calls.push({
        at: at + 2_500 + below(6_000),
        call: "create pod",
        user: pick(USERS),
        namespace: "shop",
        name: `assigned-${k}`,
        app: "job",
        node: "core-1",
      });
  }
  const servers = Object.fromEntries(processes.map((name) => [name, chance(0.3) ? 1 : 0]));
  // From numbers of its own, so that the rest of a seed stays as it was.
  const more = randomStream(`more ${seed}`);
  if (more() < 0.15)
    calls.push({
      at: WARM_UP_MS + Math.floor(more() * activeMs),
      call: "forge review",
      user: "ann",
      name: `${FORGED}${seed}`,
    });
  const configuration = chance(0.3) ? WITHOUT_FALLBACK : more() < 0.15 ? STANDING_IN : undefined;
  return {
    seed,
    replicas,
    limit,
    renewal,
    openable,
    paged,
    servers,
    ...(configuration === undefined ? {} : { configuration }),
    clocks,
    calls: calls.toSorted((a, b) => a.at - b.at),
    faults: faults.toSorted((a, b) => a.at - b.at),
    activeMs: activeMs + outageMs,
  };
}

/** The beginning of the names of projects that are only tried. */
export const DRY_RUN = "dry";
/** The beginning of the names of projects that no API server was asked for. */
export const FORGED = "forged";

interface Dice {
  readonly time: () => number;
  readonly below: (n: number) => number;
  readonly pick: <T>(list: readonly T[]) => T;
  readonly chance: (p: number) => boolean;
  readonly random: () => number;
}

const NAMESPACES = ["shop", "shop", "lab"];
const WORKLOADS = ["web", "api"];

/** Pods and workloads of tenants, the policies about them, and rollouts of another configuration. */
function callsAboutPods({ time, below, pick, chance, random }: Dice): Call[] {
  const calls: Call[] = [];
  let pods = 0;
  const pod = (at: number): Call => ({
    at,
    call: "create pod",
    user: pick(USERS),
    namespace: pick(NAMESPACES),
    name: `pod-${++pods}`,
    app: pick(["web", "job"]),
    own: chance(0.2),
    ...(chance(0.2) ? { node: pick(NODES) } : {}),
    tolerant: chance(0.2),
    host: chance(0.25),
    os: chance(0.2),
  });
  const placement = (at: number, name = pick(["pool", "pool", "dedicated"] as const)): Call => ({
    at,
    call: "set placement",
    name,
    value: pick(["a", "b"]),
    ...(chance(0.4) ? { onUpdate: pick(["Inject", "Restore"] as const) } : {}),
    ...(name === "pool" && chance(0.15) ? { enforcement: "Refuse" } : {}),
    ...(chance(0.4) ? { failurePolicy: pick(["Fail", "Ignore"] as const) } : {}),
  });
  const weighted: readonly (readonly [number, () => Call])[] = [
    [5, () => pod(time())],
    [1, () => ({ at: time(), call: "delete pod", namespace: "shop", name: `pod-${1 + below(pods + 1)}` })],
    [
      2,
      () => ({
        at: time(),
        call: "bind pod",
        namespace: "shop",
        name: `pod-${1 + below(pods + 1)}`,
        node: pick(NODES),
      }),
    ],
    [
      4,
      () => ({
        at: time(),
        call: "apply workload",
        namespace: "shop",
        name: pick(WORKLOADS),
        image: `example.com/c:${below(3)}`,
        own: chance(0.15),
      }),
    ],
    [1, () => ({ at: time(), call: "reapply workload", namespace: "shop", name: pick(WORKLOADS) })],
    [4, () => placement(time())],
    [2, () => ({ at: time(), call: "delete placement", name: pick(["pool", "dedicated"] as const) })],
    [
      3,
      () => ({
        at: time(),
        call: "set guard",
        mode: pick(["Disable", "Inform", "Enable", "Enable"] as const),
        closed: chance(0.3),
      }),
    ],
    [1, () => ({ at: time(), call: "delete guard" })],
    [
      3,
      () => ({
        at: time(),
        call: "set level",
        namespace: pick(NAMESPACES),
        level: pick(["baseline", "baseline", "privileged", null]),
      }),
    ],
    [1, () => ({ at: time(), call: "set exception", namespaces: chance(0.7) ? ["shop"] : ["lab"] })],
    [1, () => ({ at: time(), call: "delete exception" })],
    [3, () => overrideOf({ time, below, pick, chance })],
    [1, () => ({ at: time(), call: "delete override" })],
  ];
  for (let i = 4 + below(8); i > 0; i--) calls.push(choose(weighted, random)());
  // A policy changes while pods are created.
  if (chance(0.5)) {
    const at = time();
    calls.push(placement(at));
    for (let k = 2; k > 0; k--) calls.push(pod(at + below(2_000)));
  }
  if (chance(0.3)) {
    const names = Object.keys(CONFIGURATIONS);
    calls.push({ at: time(), call: "configure", configuration: pick(names) });
    if (chance(0.4)) calls.push({ at: time(), call: "configure", configuration: pick(names) });
  }
  return calls;
}

const HALF_A_DAY_MS = 12 * 3_600_000;

/** It counts while replicas decide, by right clocks, or by wrong ones, too. */
function overrideOf({ time, below, pick, chance }: Omit<Dice, "random">): Call {
  const at = time();
  const mode = pick(["Inform", "Disable"] as const);
  if (chance(0.4)) return { at, call: "set override", mode, from: -HALF_A_DAY_MS, until: HALF_A_DAY_MS };
  const from = at + below(4_000) - 2_000;
  return { at, call: "set override", mode, from, until: Math.max(from + 2_000, time()) };
}

function choose<T>(weighted: readonly (readonly [number, () => T])[], random: () => number): () => T {
  const total = weighted.reduce((sum, [weight]) => sum + weight, 0);
  let left = random() * total;
  for (const [weight, make] of weighted) {
    left -= weight;
    if (left < 0) return make;
  }
  return (weighted[0] as readonly [number, () => T])[1];
}

/** One line for people: `12.345 usher-a crash for 3 s`. */
export function describe(one: Call | Fault): string {
  const { at, ...rest } = one;
  const what = "call" in rest ? rest.call : `${rest.process} ${rest.fault}`.trim();
  const details = Object.entries(rest)
    .filter(([key]) => !["call", "fault", "process"].includes(key))
    .map(([key, value]) => `${key}=${value}`);
  return [(at / 1_000).toFixed(3), what, ...details].join(" ");
}
