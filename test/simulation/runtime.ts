/**
 * The deterministic machine of a simulation: virtual time, one queue of events, and processes with their own clocks
 * and their own randomness. Code under simulation uses the usual globals (Date, performance, timers, Math.random,
 * node:crypto): they are replaced, and find the calling process by its async context. Between two events all promises
 * settle, so that the same seed gives the same history.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import crypto from "node:crypto";
import { createRequire, syncBuiltinESMExports } from "node:module";

/** When every simulation begins: 2030-01-01. */
export const EPOCH = Date.UTC(2030, 0, 1);

/** A stream of numbers in [0, 1) that depends on nothing but its label (sfc32, seeded by FNV-1a). */
export function randomStream(label: string): () => number {
  const word = (basis: number): number => {
    let hash = basis;
    for (let i = 0; i < label.length; i++) hash = Math.imul(hash ^ label.charCodeAt(i), 0x01000193);
    return hash | 0;
  };
  let [a, b, c, d] = [word(0x811c9dc5), word(0x1b873593), word(0x2545f491), 1];
  const next = (): number => {
    const sum = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + sum) | 0;
    return (sum >>> 0) / 4_294_967_296;
  };
  for (let i = 0; i < 12; i++) next();
  return next;
}

interface SimulatedEvent {
  at: number;
  order: number;
  readonly process: SimulatedProcess | undefined;
  run: (() => void) | undefined;
  /** A timer of the process, not an arrival from outside. */
  timer?: boolean;
}

const storage = new AsyncLocalStorage<SimulatedProcess>();

/** A process: it can crash, freeze, and have a wrong clock. A restarted one is another object with the same name. */
export class SimulatedProcess {
  readonly name: string;
  readonly runtime: Runtime;
  readonly random: () => number;
  alive = true;
  /** How fast its clocks run. */
  readonly rate: number;
  /** How far its wall clock is off, in milliseconds. */
  wallOffset: number;
  readonly #started: number;
  #frozen = false;
  readonly #parked: SimulatedEvent[] = [];

  constructor(runtime: Runtime, name: string, clock: { readonly rate: number; readonly wallOffset: number }) {
    this.runtime = runtime;
    this.name = name;
    this.rate = clock.rate;
    this.wallOffset = clock.wallOffset;
    this.#started = runtime.now;
    this.random = runtime.randomFor(`process ${name} at ${runtime.now}`);
  }

  /** Milliseconds of the monotonic clock, from the start of the process. */
  get elapsed(): number {
    return (this.runtime.now - this.#started) * this.rate;
  }

  get wallClock(): number {
    return EPOCH + this.runtime.now * this.rate + this.wallOffset;
  }

  get frozen(): boolean {
    return this.#frozen;
  }

  run<T>(work: () => T): T {
    return storage.run(this, work);
  }

  /** From here on it does nothing: its timers and answers are dropped, and whatever it sends is not sent. */
  crash(): void {
    this.alive = false;
    this.#parked.length = 0;
  }

  freeze(): void {
    this.#frozen = true;
  }

  /** All that was due meanwhile happens now, in order; Node may run expired timers before it reads from sockets. */
  thaw(timersFirst: boolean): void {
    this.#frozen = false;
    const parked = this.#parked.splice(0);
    const first = timersFirst ? parked.filter(({ timer }) => timer) : [];
    for (const event of [...first, ...parked.filter((one) => !first.includes(one))])
      this.runtime.requeue(event);
  }

  park(event: SimulatedEvent): void {
    this.#parked.push(event);
  }
}

/** A timer as Node returns it. */
class SimulatedTimer {
  #event: SimulatedEvent | undefined;
  readonly #start: () => SimulatedEvent;

  constructor(start: () => SimulatedEvent) {
    this.#start = start;
    this.#event = start();
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  refresh(): this {
    this.cancel();
    this.#event = this.#start();
    return this;
  }

  cancel(): void {
    if (this.#event !== undefined) this.#event.run = undefined;
  }

  [Symbol.dispose](): void {
    this.cancel();
  }
}

/** Node fires timers after one millisecond at the earliest. */
const SHORTEST_TIMER_MS = 1;

/** How often it is looked whether a promise is fulfilled. */
const WAIT_STEP_MS = 50;

/** Events at one instant of virtual time. More mean that something waits for a time that never comes. */
const MOST_AT_ONCE = 100_000;

export class Runtime {
  readonly seed: string;
  now = 0;
  /** Events that have run. */
  events = 0;
  /** The first violation or uncaught error ends the run. */
  failure: string | undefined;
  readonly #queue: SimulatedEvent[] = [];
  #order = 0;

  constructor(seed: string) {
    this.seed = seed;
  }

  randomFor(label: string): () => number {
    return randomStream(`${this.seed} ${label}`);
  }

  fail(why: string): void {
    this.failure ??= why;
  }

  /** Calls back after this time of the world's clock, in the context of the process, unless it has crashed by then. */
  schedule(ms: number, run: () => void, process?: SimulatedProcess): SimulatedEvent {
    const event = { at: this.now + Math.max(0, ms), order: ++this.#order, process, run };
    this.#push(event);
    return event;
  }

  requeue(event: SimulatedEvent): void {
    event.at = this.now;
    event.order = ++this.#order;
    this.#push(event);
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.schedule(ms, resolve));
  }

  /** Runs events until this time, or until a failure. */
  async run(until: number): Promise<void> {
    let atOnce = 0;
    await rejectionsReported();
    while (this.failure === undefined) {
      const next = this.#queue[0];
      if (next === undefined || next.at > until) break;
      this.#pop();
      if (next.run === undefined || next.process?.alive === false) continue;
      atOnce = next.at > this.now ? 0 : atOnce + 1;
      if (atOnce > MOST_AT_ONCE) this.fail(`more than ${MOST_AT_ONCE} events without any time passing`);
      this.now = Math.max(this.now, next.at);
      if (next.process?.frozen) {
        next.process.park(next);
        continue;
      }
      this.events += 1;
      this.#perform(next);
      await (this.events % REPORTED_EVERY === 0 ? rejectionsReported() : nothingPending());
    }
    await rejectionsReported();
    this.now = Math.max(this.now, until);
  }

  /** Runs events until the promise is fulfilled, for at most this time. */
  async waitFor<T>(promise: Promise<T>, mostMs: number): Promise<T | undefined> {
    const end = this.now + mostMs;
    let result: { readonly value: T } | undefined;
    void promise.then((value) => (result = { value }));
    while (result === undefined && this.now < end && this.failure === undefined)
      await this.run(Math.min(end, this.now + WAIT_STEP_MS));
    return result?.value;
  }

  #perform({ process, run }: SimulatedEvent): void {
    try {
      if (process === undefined) storage.exit(() => run?.());
      else process.run(() => run?.());
    } catch (error) {
      this.fail(
        `uncaught in ${process?.name ?? "the world"}: ${error instanceof Error ? error.stack : error}`,
      );
    }
  }

  #push(event: SimulatedEvent): void {
    const heap = this.#queue;
    let i = heap.length;
    heap.push(event);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      const above = heap[parent] as SimulatedEvent;
      if (!before(event, above)) break;
      heap[i] = above;
      i = parent;
    }
    heap[i] = event;
  }

  #pop(): void {
    const heap = this.#queue;
    const last = heap.pop() as SimulatedEvent;
    if (heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1] as SimulatedEvent, heap[child] as SimulatedEvent))
        child += 1;
      if (!before(heap[child] as SimulatedEvent, last)) break;
      heap[i] = heap[child] as SimulatedEvent;
      i = child;
    }
    heap[i] = last;
  }
}

function before(a: SimulatedEvent, b: SimulatedEvent): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

const real = { setImmediate, Date, random: Math.random, now: performance.now.bind(performance) };

/** Resolves when no promise is left to settle: Node runs a tick after all microtasks. */
function nothingPending(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

/** Node reports promises that were rejected without a handler when no tick is left, so it gets an iteration of its loop. */
function rejectionsReported(): Promise<void> {
  return new Promise((resolve) => real.setImmediate(resolve));
}

/** An iteration costs as much as a short event. */
const REPORTED_EVERY = 20;

/** Milliseconds of the real clock, for measurements of the simulation itself. */
export const realNow = real.now;

let current: Runtime | undefined;

/** Makes the runtime the one that the globals belong to. */
export function activate(runtime: Runtime | undefined): void {
  if (runtime !== undefined) replaceGlobals();
  current = runtime;
}

let replaced = false;

function replaceGlobals(): void {
  if (replaced) return;
  replaced = true;
  const wallClock = (): number =>
    current === undefined ? real.Date.now() : (storage.getStore()?.wallClock ?? EPOCH + current.now);
  const SimulatedDate = new Proxy(real.Date, {
    construct: (target, given: [], newTarget) =>
      Reflect.construct(target, given.length === 0 ? [wallClock()] : given, newTarget),
    get: (target, key) => (key === "now" ? wallClock : Reflect.get(target, key)),
  });
  const random = (): number => (storage.getStore()?.random ?? real.random)();
  const bytes = (size: number): Buffer =>
    Buffer.from(Array.from({ length: size }, () => Math.floor(random() * 256)));
  const uuid = (): string => {
    const hex = bytes(16).toString("hex");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  };
  const timer = (ms: number, again: boolean, call: () => void): SimulatedTimer => {
    const process = storage.getStore();
    const runtime = process?.runtime ?? current;
    if (runtime === undefined) throw new Error("a timer outside of a simulation");
    const delay = Math.max(SHORTEST_TIMER_MS, Number(ms) || 0) / (process?.rate ?? 1);
    const created: SimulatedTimer = new SimulatedTimer(() => {
      const fire = () => {
        if (again) created.refresh();
        call();
      };
      return Object.assign(runtime.schedule(delay, fire, process), { timer: true });
    });
    return created;
  };
  const immediate = (call: () => void): SimulatedTimer => {
    const process = storage.getStore();
    const runtime = process?.runtime ?? current;
    if (runtime === undefined) throw new Error("an immediate outside of a simulation");
    return new SimulatedTimer(() => runtime.schedule(0, call, process));
  };
  const cancel = (one: unknown): void => {
    if (one instanceof SimulatedTimer) one.cancel();
  };
  const timers = {
    setTimeout: (call: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) =>
      timer(ms, false, () => call(...given)),
    setInterval: (call: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) =>
      timer(ms, true, () => call(...given)),
    setImmediate: (call: (...given: unknown[]) => void, ...given: unknown[]) =>
      immediate(() => call(...given)),
    clearTimeout: cancel,
    clearInterval: cancel,
    clearImmediate: cancel,
  };
  Object.assign(globalThis, { Date: SimulatedDate, ...timers });
  Math.random = random;
  performance.now = () => storage.getStore()?.elapsed ?? current?.now ?? real.now();
  const promised = createRequire(import.meta.url)("node:timers/promises") as Record<string, unknown>;
  promised["setTimeout"] = (ms: number, value: unknown, { signal }: { signal?: AbortSignal } = {}) =>
    new Promise((resolve, reject) => {
      const stop = () => {
        waiting.cancel();
        reject(signal?.reason);
      };
      const waiting = timer(ms, false, () => {
        signal?.removeEventListener("abort", stop);
        resolve(value);
      });
      if (signal?.aborted) stop();
      else signal?.addEventListener("abort", stop, { once: true });
    });
  promised["setImmediate"] = (value: unknown) => new Promise((resolve) => immediate(() => resolve(value)));
  Object.assign(crypto, {
    randomBytes: bytes,
    randomUUID: uuid,
    randomInt: (low: number, high?: number) =>
      high === undefined ? Math.floor(random() * low) : low + Math.floor(random() * (high - low)),
  });
  AbortSignal.any = anySignal;
  memoizeCertificates();
  syncBuiltinESMExports();
  process.on("unhandledRejection", (error) => {
    current?.fail(`unhandled rejection: ${error instanceof Error ? error.stack : error}`);
  });
}

/** Node keeps each combined signal that has a listener until it is aborted, and with it the world of a process that has ended. */
function anySignal(signals: Iterable<AbortSignal>): AbortSignal {
  const controller = new AbortController();
  for (const one of signals) {
    const abort = () => controller.abort(one.reason);
    if (one.aborted) abort();
    else one.addEventListener("abort", abort, { once: true });
  }
  return controller.signal;
}

/** Parsing and verifying certificates are pure, and would take a third of the time: each is done once. */
function memoizeCertificates(): void {
  const { X509Certificate, createPrivateKey } = crypto;
  const parsed = new Map<string, unknown>();
  const keys = new Map<unknown, unknown>();
  const once = <T>(cache: Map<string, unknown>, key: unknown, make: () => T): T => {
    if (typeof key !== "string") return make();
    const known = cache.get(key) as T | undefined;
    if (known !== undefined) return known;
    const made = make();
    cache.set(key, made);
    return made;
  };
  const { prototype } = X509Certificate;
  const publicKey = Object.getOwnPropertyDescriptor(prototype, "publicKey")?.get;
  Object.defineProperty(prototype, "publicKey", {
    get(this: object) {
      const known = keys.get(this);
      if (known !== undefined) return known;
      const key: unknown = publicKey?.call(this);
      keys.set(this, key);
      return key;
    },
  });
  // Of one argument: a key, or a name.
  for (const name of ["verify", "checkPrivateKey", "checkHost"] as const) {
    const original = prototype[name] as (this: object, given: unknown) => unknown;
    const results = new WeakMap<object, Map<unknown, unknown>>();
    Object.defineProperty(prototype, name, {
      value(this: object, given: unknown) {
        const known = results.get(this) ?? new Map<unknown, unknown>();
        results.set(this, known);
        if (!known.has(given)) known.set(given, original.call(this, given));
        return known.get(given);
      },
    });
  }
  const privateKeys = new Map<string, unknown>();
  Object.assign(crypto, {
    X509Certificate: new Proxy(X509Certificate, {
      construct: (target, given) => once(parsed, given[0], () => Reflect.construct(target, given) as object),
    }),
    createPrivateKey: (given: Parameters<typeof createPrivateKey>[0]) =>
      once(privateKeys, given, () => createPrivateKey(given)),
  });
}
