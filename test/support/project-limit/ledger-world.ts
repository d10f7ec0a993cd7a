import { type Fact, Facts, type Need } from "../../../src/core/decision/need.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { Store } from "../../../src/core/view/store.ts";
import type { Change } from "../../../src/core/view/view.ts";
import { EntryAges } from "../../../src/modules/project-limit/ledger/entry-ages.ts";
import { projectOf } from "../../../src/modules/project-limit/ledger/match-entry.ts";
import {
  entriesIn,
  type LedgerEntry,
  USAGES,
} from "../../../src/modules/project-limit/ledger/project-usage.ts";
import { LEDGERS, ledgerReconciler } from "../../../src/modules/project-limit/ledger/reconcile-ledgers.ts";
import { reserve } from "../../../src/modules/project-limit/ledger/reserve.ts";
import { BY_REQUESTER, namespacesOf } from "../../../src/modules/project-limit/projects.ts";
import { ledgerName } from "../../../src/modules/project-limit/subject.ts";

const SUBJECT = { username: "ann" };
const LEDGER = ledgerName(SUBJECT);
const KEY = { kind: "ledger", name: LEDGER } as const;

/** The maximum lifetime of a request, whatever it waits for. */
const LIFETIME_MS = 34_100;

interface Flight {
  readonly name: string;
  readonly kind: "Namespace" | "ProjectRequest";
  readonly uid: string;
  readonly began: number;
  readonly replica: number;
  /** The ledger as read by this request. */
  fact?: Fact;
  admitted?: boolean;
}

interface Replica {
  readonly view: Store;
  /** Events that its watches have received: each resource has its own watch, independent of the others. */
  readonly positions: Map<string, number>;
}

const RESOURCES = ["namespaces", USAGES];

/** A leader between its reads and its write. */
interface Sweep {
  readonly facts: Facts;
}

/**
 * An API server, replicas with lagging watches, requests in progress and a leader that releases leaked reservations:
 * each step is separate, in any order. Time advances only explicitly.
 */
export class LedgerWorld {
  readonly limit: number;
  readonly #namespaces = new Map<string, JsonObject>();
  #ledger: JsonObject | undefined;
  #version = 0;
  readonly #events: Change[] = [];
  readonly #replicas: Replica[];
  readonly #flights: Flight[] = [];
  #leader = 0;
  #ages = new EntryAges();
  #sweep: Sweep | undefined;
  #now = 0;
  #uid = 0;

  /** `owned`: namespaces from before the limit existed, which are not in the ledger. */
  constructor(limit: number, replicas: number, owned: readonly string[] = []) {
    this.limit = limit;
    this.#replicas = Array.from({ length: replicas }, () => ({
      view: new Store(
        new Map([
          ["namespaces", [BY_REQUESTER]],
          [USAGES, LEDGERS.indexes ?? []],
        ]),
      ),
      positions: new Map<string, number>(),
    }));
    for (const name of owned.slice(0, limit)) this.#store(name, `uid-${++this.#uid}`, "ann", "Active");
    for (const i of this.#replicas.keys()) this.observe(i, Number.POSITIVE_INFINITY);
  }

  /** The number that the limit bounds: up to two terminating namespaces do not count. */
  get counted(): number {
    const all = [...this.#namespaces.values()].map(projectOf).filter(({ requester }) => requester === "ann");
    const terminating = all.filter((one) => one.terminating).length;
    return all.length - Math.min(terminating, 2);
  }

  get names(): string[] {
    return [...this.#namespaces.keys()].sort();
  }

  get entries(): string[] {
    return entriesIn(this.#ledger)
      .map(({ name }) => name)
      .sort();
  }

  /** Requests that have not ended. */
  get underWay(): number {
    return this.#flights.length;
  }

  get remembered(): number {
    return this.#ages.size;
  }

  ask(replica: number, name: string, kind: Flight["kind"]): void {
    const uid = `uid-${++this.#uid}`;
    this.#flights.push({ name, kind, uid, began: this.#now, replica: replica % this.#replicas.length });
  }

  /** The next step of a request: it reads the ledger, writes it, and then creates. */
  proceed(which: number): void {
    const flight = this.#flights[which % Math.max(1, this.#flights.length)];
    if (flight === undefined) return;
    if (flight.admitted === true) {
      this.#create(flight);
      this.#end(flight);
    } else if (flight.fact === undefined) flight.fact = this.#read();
    else this.#commit(flight, flight.fact);
  }

  /** A complete reservation without interruption; its creation is still to come. */
  admit(replica: number, name: string, kind: Flight["kind"]): void {
    this.ask(replica, name, kind);
    const last = this.#flights.length - 1;
    this.proceed(last);
    this.proceed(last);
  }

  /**
   * The request ends here, with whatever it has reserved: another webhook denied it, the client disconnected, or the
   * replica crashed.
   */
  lose(which: number): void {
    const flight = this.#flights[which % Math.max(1, this.#flights.length)];
    if (flight !== undefined) this.#end(flight);
  }

  /** A user without a limit creates a namespace. */
  intrude(name: string): void {
    if (!this.#namespaces.has(name)) this.#store(name, `uid-${++this.#uid}`, "bob", "Active");
  }

  terminate(name: string): void {
    const project = this.#namespaces.get(name);
    if (project === undefined) return;
    const { uid, requester = "" } = projectOf(project);
    this.#store(name, uid, requester, "Terminating");
  }

  vanish(name: string): void {
    const project = this.#namespaces.get(name);
    if (project === undefined || !projectOf(project).terminating) return;
    this.#namespaces.delete(name);
    this.#events.push({ resource: "namespaces", namespace: "", name, object: undefined });
  }

  /** This many events arrive; `resource`: on this watch only, while the other lags. */
  observe(replica: number, events: number, resource?: string): void {
    const index = replica % this.#replicas.length;
    const one = this.#replicas[index];
    if (one === undefined) return;
    for (const watched of resource === undefined ? RESOURCES : [resource]) {
      const from = one.positions.get(watched) ?? 0;
      const next = this.#events.filter((event) => event.resource === watched).slice(from, from + events);
      one.positions.set(watched, from + next.length);
      for (const change of one.view.apply(next))
        if (index === this.#leader) ledgerReconciler.keys(change, this.#ages, { view: one.view });
    }
  }

  pass(ms: number): void {
    this.#now += ms;
    for (const flight of [...this.#flights]) if (this.#now - flight.began > LIFETIME_MS) this.#end(flight);
  }

  /** The leader reads its inputs, and writes on the next step. */
  sweep(): void {
    const sweep = this.#sweep ?? { facts: new Facts() };
    const view = this.#replicas[this.#leader]?.view ?? new Store();
    const context = { view, facts: sweep.facts, now: 0, elapsed: this.#now };
    const result = ledgerReconciler.reconcile(KEY, this.#ages, context);
    if ("need" in result) {
      for (const need of result.need as readonly Need[]) sweep.facts.set(need, this.#factOf(need));
      this.#sweep = sweep;
      return;
    }
    this.#sweep = undefined;
    for (const write of result.writes)
      if (write.resourceVersion === String(this.#version)) {
        if ("patch" in write) {
          const [operation] = write.patch;
          const spec = { subject: "ann", entries: operation && "value" in operation ? operation.value : [] };
          this.#write({ ...this.#ledger, spec });
        } else this.#write(undefined);
      }
  }

  /** The leader's complete run after this time, without interruption. */
  sweepAfter(ms: number): void {
    this.observe(this.#leader, Number.POSITIVE_INFINITY);
    this.sweep();
    this.pass(ms);
    for (let i = 0; i < 2; i++) this.sweep();
    this.observe(this.#leader, Number.POSITIVE_INFINITY);
  }

  /** The leader dies; another replica starts counting from its own observations. */
  elect(leader: number): void {
    this.#leader = leader % this.#replicas.length;
    this.#ages = new EntryAges();
    this.#sweep = undefined;
  }

  /** Every request ends, every event arrives, and the leader gets enough time. */
  calm(): void {
    this.pass(LIFETIME_MS + 1);
    for (const i of this.#replicas.keys()) this.observe(i, Number.POSITIVE_INFINITY);
    this.elect(0);
    for (let i = 0; i < 20; i++) {
      this.sweep();
      this.observe(0, Number.POSITIVE_INFINITY);
      this.pass(3_500);
    }
  }

  #end(flight: Flight): void {
    this.#flights.splice(this.#flights.indexOf(flight), 1);
  }

  #read(): Fact {
    return this.#ledger === undefined ? { absent: "NotFound" } : { found: this.#ledger, complete: true };
  }

  #factOf(need: Need): Fact {
    if (!("get" in need)) return { failed: "not expected" };
    if (need.get.resource === USAGES) return this.#read();
    const found = this.#namespaces.get(need.get.name);
    return found === undefined ? { absent: "NotFound" } : { found, complete: true };
  }

  #commit(flight: Flight, fact: Fact): void {
    const { name, uid, kind, replica } = flight;
    const view = this.#replicas[replica]?.view ?? new Store();
    const now = view.get("namespaces", "", name);
    const replaces = now === undefined ? {} : { replaces: projectOf(now).uid };
    const entry: LedgerEntry = kind === "Namespace" ? { name, uid } : { name, request: uid, ...replaces };
    const facts = new Facts();
    facts.set({ get: { resource: USAGES, name: LEDGER }, live: true, mayBeAbsent: true }, fact);
    const projects = namespacesOf(view, SUBJECT).map(projectOf);
    const result = reserve({ subject: SUBJECT, limit: this.limit, entry, projects, facts });
    if (!("used" in result)) this.#end(flight);
    else if (result.commit === undefined) flight.admitted = true;
    else {
      const { object, resourceVersion } = result.commit;
      const stored = this.#ledger === undefined ? undefined : String(this.#version);
      delete flight.fact;
      if (resourceVersion !== stored) return;
      this.#write(object);
      flight.admitted = true;
    }
  }

  #create({ name, uid, kind }: Flight): void {
    // A ProjectRequest creates another object.
    if (!this.#namespaces.has(name))
      this.#store(name, kind === "Namespace" ? uid : `uid-${++this.#uid}`, "ann", "Active");
  }

  #store(name: string, uid: string, requester: string, phase: string): void {
    const annotations = { "openshift.io/requester": requester };
    const object = { metadata: { name, uid, annotations }, status: { phase } };
    this.#namespaces.set(name, object);
    this.#events.push({ resource: "namespaces", namespace: "", name, object });
  }

  #write(object: JsonObject | undefined): void {
    this.#version += 1;
    const metadata = { name: LEDGER, resourceVersion: String(this.#version) };
    this.#ledger = object === undefined ? undefined : { ...object, metadata };
    this.#events.push({ resource: USAGES, namespace: "", name: LEDGER, object: this.#ledger });
  }
}
