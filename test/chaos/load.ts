// Requests that every fail-closed hook of usher has to answer, one after another, without end.
import { setTimeout as pause } from "node:timers/promises";
import { at, type Json, type JsonObject, stringAt } from "../../src/core/json.ts";
import type { Reply } from "../cluster/access/client.ts";
import type { Identity } from "../cluster/access/identity.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { MALLORY, SPEC } from "../e2e/guarding/stage.ts";

export const ALICE: Identity = { user: "alice" };

/** The requests: dry runs, so that the cluster stays unchanged. */
interface Ask {
  readonly what: string;
  readonly path: string;
  readonly body: JsonObject;
  readonly as?: Identity;
  readonly right: (reply: Reply) => boolean;
}

function pods(namespace: string, spec: JsonObject, labels: JsonObject = {}): Pick<Ask, "path" | "body"> {
  const body = { metadata: { generateName: "p-", labels }, spec };
  return { path: `/api/v1/namespaces/${namespace}/pods?dryRun=All`, body };
}

function message(body: Json): string {
  return stringAt(body, "message") ?? "";
}

const PRIVILEGED = { containers: [{ name: "c", image: "app:1", securityContext: { privileged: true } }] };

const ASKS: readonly Ask[] = [
  {
    what: "placement",
    ...pods("team-a", SPEC, { role: "etcd" }),
    right: ({ status, body }) => status === 201 && at(body, "spec", "nodeSelector", "pool") === "etcd",
  },
  {
    what: "node-guard",
    ...pods("team-a", { ...SPEC, nodeName: "cp-0" }),
    as: MALLORY,
    right: ({ status, body }) => status === 403 && message(body).includes("USHER-G01"),
  },
  {
    what: "pod-os",
    ...pods("locked", PRIVILEGED),
    right: ({ status, body }) => status === 403 && message(body).includes("violates PodSecurity"),
  },
  {
    what: "project-limit",
    path: "/api/v1/namespaces?dryRun=All",
    body: { metadata: { generateName: "alice-" } },
    as: ALICE,
    right: ({ status, body }) =>
      status === 201 && at(body, "metadata", "annotations", "openshift.io/requester") === ALICE.user,
  },
];

export interface Failure {
  /** When it was sent, and when it failed, by `performance.now()`. */
  readonly sentAt: number;
  readonly at: number;
  readonly what: string;
  /** Failures that are expected while the API server or its etcd is down. */
  readonly away: boolean;
}

const CLIENTS = 2;
const PAUSE_MS = 20;

/**
 * A webhook that can't be called is usher's fault, and so is an object that bypassed it. Every other refusal may be the
 * API server's, or usher's because of it: without etcd usher can't read the facts that it needs.
 */
function isAway({ status, body }: Reply): boolean {
  return status >= 400 && !message(body).includes("failed calling webhook");
}

async function failureOf(cluster: Cluster, ask: Ask): Promise<Pick<Failure, "what" | "away"> | undefined> {
  try {
    const reply = await cluster.request("POST", ask.path, ask.body, ask.as);
    if (ask.right(reply)) return undefined;
    const said = message(reply.body) || JSON.stringify(reply.body).slice(0, 500);
    return { what: `${ask.what}: ${reply.status} ${said}`, away: isAway(reply) };
  } catch (error) {
    return { what: `${ask.what}: ${error}`, away: true };
  }
}

/** Sends every request once and returns the wrong results. */
export async function failuresNow(cluster: Cluster): Promise<readonly string[]> {
  const found = await Promise.all(ASKS.map((ask) => failureOf(cluster, ask)));
  return found.flatMap((failure) => (failure === undefined ? [] : [failure.what]));
}

export interface Loaded {
  readonly sent: number;
  readonly failures: readonly Failure[];
}

/** Sends requests as fast as they are answered while `work` runs. */
export async function underLoad(cluster: Cluster, work: () => Promise<unknown>): Promise<Loaded> {
  const failures: Failure[] = [];
  let sent = 0;
  let over = false;
  const client = async (): Promise<void> => {
    for (; !over; await pause(PAUSE_MS)) {
      const ask = ASKS[sent++ % ASKS.length];
      const sentAt = performance.now();
      const failure = ask && (await failureOf(cluster, ask));
      if (failure !== undefined) failures.push({ sentAt, at: performance.now(), ...failure });
    }
  };
  const clients = Array.from({ length: CLIENTS }, client);
  try {
    await work();
  } finally {
    over = true;
    await Promise.all(clients);
  }
  return { sent, failures };
}
