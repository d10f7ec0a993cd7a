import { setTimeout as sleep } from "node:timers/promises";
import type { RecordedDecision } from "../../admission/observe/recorded-decisions.ts";
import type { Source } from "../../core/evaluate/source.ts";
import { at, isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import type * as Model from "../../dashboard/model.ts";
import type { DashboardState } from "../../dashboard/state.ts";
import { readAll } from "../foresight/open-world.ts";
import { reviewDeadline } from "../review/deadline.ts";

type Shown = Omit<Model.LiveDecision, "id">;

export interface Following {
  readonly state: DashboardState;
  readonly send: (decisions: readonly Model.LiveDecision[]) => void;
  readonly signal: AbortSignal;
}

/** A person sees a decision within this time. */
const ASK_MS = 1_000;

/** Follows the decisions of a server on the same files, by its ops port. It may come and go. */
export async function followServer(ops: string, { state, send, signal }: Following): Promise<void> {
  let after = 0;
  let instance = "";
  while (!signal.aborted) {
    try {
      const response = await fetch(`${ops}/decisions?after=${after}`, {
        signal: AbortSignal.any([signal, AbortSignal.timeout(5_000)]),
      });
      if (!response.ok) throw new Error(`${ops} answers ${response.status}`);
      const page = (await response.json()) as { instance: string; decisions: RecordedDecision[] };
      // A server that started again counts from one.
      if (page.instance !== instance && instance !== "" && after > 0) after = 0;
      instance = page.instance;
      const fresh = page.decisions.filter(({ number }) => number > after);
      after = fresh.at(-1)?.number ?? after;
      state.decisionNote = `Decisions of the server at ${ops}, as they come.`;
      send(state.decide(fresh.map((one) => ofServer(one, state))));
    } catch {
      state.decisionNote = `No server answers at ${ops}. Start one on the same files with npm start, or usher serve --source, and pass its address of health and metrics with --decisions.`;
    }
    await sleep(ASK_MS, undefined, { signal }).catch(() => undefined);
  }
}

function ofServer(
  { number: _number, policies, ...decision }: RecordedDecision,
  state: DashboardState,
): Shown {
  return { ...decision, policies: policies.map((key) => state.link(key)), count: 1 };
}

/** Events are aggregated by the API server's clients, and a list of them is a call. */
const EVENTS_MS = 3_000;

/** Follows the events that usher writes in a cluster. */
export async function followEvents(source: Source, { state, send, signal }: Following): Promise<void> {
  const seen = new Map<string, string>();
  while (!signal.aborted) {
    const { objects, failure } = await readAll(
      "events.events.k8s.io",
      (needs) => source.fetch(needs, reviewDeadline()),
      {
        fieldSelector: "reportingController=usher.dev/usher",
      },
    );
    if (failure !== undefined) state.decisionNote = `Events can't be read: ${failure}.`;
    else {
      state.decisionNote = "Events that usher writes in the cluster, every few seconds.";
      const fresh = objects
        .filter((event) => /^usher/.test(stringAt(event, "reportingController") ?? ""))
        .map((event) => ({ event, key: `${namespaceOf(event)}/${nameOf(event)}`, time: timeOf(event) }))
        .filter(({ key, time, event }) => seen.get(key) !== `${time} ${countOf(event)}`)
        .sort((a, b) => (a.time < b.time ? -1 : 1));
      for (const { key, time, event } of fresh) seen.set(key, `${time} ${countOf(event)}`);
      const known = new Set(objects.map((event) => `${namespaceOf(event)}/${nameOf(event)}`));
      for (const key of seen.keys()) if (!known.has(key)) seen.delete(key);
      send(state.decide(fresh.map(({ event, time }) => ofEvent(event, time, state))));
    }
    await sleep(EVENTS_MS, undefined, { signal }).catch(() => undefined);
  }
}

function timeOf(event: JsonObject): string {
  return stringAt(event, "series", "lastObservedTime") ?? stringAt(event, "eventTime") ?? "";
}

function countOf(event: JsonObject): number {
  const count = at(event, "series", "count");
  return typeof count === "number" ? count : 1;
}

function ofEvent(event: JsonObject, time: string, state: DashboardState): Shown {
  const reason = stringAt(event, "reason") ?? "";
  const [kind, name, namespace] = ["kind", "name", "namespace"].map((one) => stringAt(event, "related", one));
  const regarding = isObject(event["regarding"]) ? event["regarding"] : {};
  const refused = /denied|refused|forbidden/i.test(`${reason} ${stringAt(event, "action") ?? ""}`);
  return {
    time,
    verdict: refused ? "refused" : stringAt(event, "type") === "Warning" ? "warned" : "changed",
    operation: stringAt(event, "action") ?? reason,
    object: {
      kind: stringAt(regarding, "kind") ?? "",
      namespace: stringAt(regarding, "namespace") ?? "",
      name: stringAt(regarding, "name") ?? "",
    },
    user: "",
    policies: name === undefined ? [] : [state.link([kind, namespace, name].filter(Boolean).join("/"))],
    lines: [stringAt(event, "note") ?? reason],
    count: countOf(event),
  };
}
