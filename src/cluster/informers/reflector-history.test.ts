import fc from "fast-check";
import { expect, test } from "vitest";
import { History } from "../../../test/support/cluster/history.ts";
import type { JsonObject } from "../../core/json.ts";
import { REFLECTOR_LIMITS } from "./reflector-limits.ts";
import { ReflectorState } from "./reflector-state.ts";
import type { Action, ReceivedObject, ReflectorInput } from "./reflector-steps.ts";

/** How a server may treat a streaming list. */
type Streaming = "served" | "refused" | "misunderstood";

type Fault = "none" | "failure" | "end" | "idle timeout" | "too old" | "busy" | "too large";

type Event =
  | { readonly kind: "put"; readonly name: string; readonly value: string }
  | { readonly kind: "remove"; readonly name: string }
  | { readonly kind: "pass" | "compact" | "uninstall" | "install" }
  /** Occurs after some inputs. */
  | { readonly kind: "go"; readonly inputs: number; readonly fault: Fault; readonly late: number };

function received(object: JsonObject): ReceivedObject {
  const { name } = object["metadata"] as { name: string };
  return { namespace: "", name, object };
}

/** A state machine and the model of its server; its changes must add up to the stored state. */
class Simulation {
  readonly history = new History();
  readonly delivered = new Map<string, JsonObject>();
  readonly #state: ReflectorState;
  readonly #streaming: Streaming;
  #action: Action;
  #served = true;
  #now = 0;
  /** The events that an open stream has yet to send, and the version that it has sent. */
  #stream: { readonly inputs: ReflectorInput[]; sent: number } | undefined;
  /** The version up to which all changes were delivered; `undefined` during a list. */
  #completeAt: number | undefined;

  constructor(streaming: Streaming, seed: number) {
    this.#streaming = streaming;
    let last = seed;
    const random = (): number => {
      last = (last * 1_103_515_245 + 12_345) % 2 ** 31;
      return last / 2 ** 31;
    };
    this.#state = new ReflectorState("things", random, {
      ...REFLECTOR_LIMITS,
    });
    this.#action = this.#state.start(this.#now);
  }

  run(event: Event): void {
    if (event.kind === "put") this.history.put(event.name, event.value);
    else if (event.kind === "remove") this.history.remove(event.name);
    else if (event.kind === "pass") this.history.pass();
    else if (event.kind === "compact") this.history.compact();
    else if (event.kind === "go") this.#go(event.inputs, event.fault, event.late);
    else this.#served = event.kind === "install";
  }

  /** Runs until the state machine is in sync; false if it never is. */
  idle(): boolean {
    this.#served = true;
    for (let i = 0; i < 500; i++) {
      if (this.#stream !== undefined && this.#completeAt === this.history.version) return true;
      this.#go(5, "none", 100);
      // A streaming list that never completes ends by the idle timeout.
      if (this.#stream !== undefined && this.#completeAt === undefined && this.#streaming === "misunderstood")
        this.#see({ saw: "idle timeout" });
    }
    return false;
  }

  /** In a list that will never be complete. */
  get #misled(): boolean {
    return (
      this.#stream !== undefined && this.#completeAt === undefined && this.#streaming === "misunderstood"
    );
  }

  #go(inputs: number, fault: Fault, late: number): void {
    for (let i = 0; i < inputs; i++) {
      const input = this.#input();
      if (input === undefined) break;
      this.#see(input);
    }
    this.#now += late;
    const input = this.#faulty(fault);
    if (input !== undefined) this.#see(input);
  }

  #see(input: ReflectorInput): void {
    const { changes, synced, action } = this.#state.step(input, this.#now);
    for (const { name, object } of changes) {
      if (object === undefined) this.delivered.delete(name);
      else this.delivered.set(name, object);
    }
    if (synced)
      this.#completeAt = Number(
        input.saw === "page" || input.saw === "bookmark" ? input.version : Number.NaN,
      );
    else if (
      this.#completeAt !== undefined &&
      (input.saw === "object" || input.saw === "deletion" || input.saw === "bookmark")
    )
      this.#completeAt = Number(input.version);
    if (action !== undefined) {
      this.#action = action;
      this.#stream = undefined;
      // Complete until a new list mixes old and new objects.
      if (action.do === "list" || action.do === "stream list" || input.saw === "not served")
        this.#completeAt = undefined;
    }
    if (this.#completeAt !== undefined)
      expect(sorted(this.delivered)).toEqual(sorted(this.history.at(this.#completeAt)));
  }

  #input(): ReflectorInput | undefined {
    const action = this.#action;
    if (action.do === "wait") {
      this.#now += action.ms;
      return { saw: "timer" };
    }
    if (action.do === "locate") return { saw: this.#served ? "served" : "not served" };
    if (!this.#served) return { saw: "error status", status: 404, retryAfterMs: undefined };
    if (action.do === "list") return this.#page(action.next);
    if (this.#stream === undefined) {
      const refused = this.#open(action);
      if (refused !== undefined) return refused;
    }
    return this.#next();
  }

  #page(token: string | undefined): ReflectorInput {
    const page = this.history.page(2, token);
    if (page === undefined) return tooOld();
    return { saw: "page", items: page.items.map(received), version: page.version, next: page.next };
  }

  #open(action: Action): ReflectorInput | undefined {
    if (action.do === "watch") {
      if (this.history.after(Number(action.version)) === undefined) return tooOld();
      this.#stream = { inputs: [], sent: Number(action.version) };
      return undefined;
    }
    if (this.#streaming === "refused") return { saw: "error status", status: 422, retryAfterMs: undefined };
    const { version } = this.history;
    const inputs = [...this.history.at(version).values()].map((object): ReflectorInput => {
      const { resourceVersion } = object["metadata"] as { resourceVersion: string };
      return { saw: "object", received: received(object), version: resourceVersion };
    });
    if (this.#streaming === "served")
      inputs.push({ saw: "bookmark", version: String(version), endOfList: true });
    this.#stream = { inputs, sent: version };
    return undefined;
  }

  #next(): ReflectorInput | undefined {
    const stream = this.#stream;
    if (stream === undefined) return undefined;
    const first = stream.inputs.shift();
    if (first !== undefined) return first;
    // Compaction does not affect an open watch: events reach it as they happen.
    const write = this.#writeAfter(stream.sent);
    if (write === undefined) {
      if (stream.sent === this.history.version || this.#misled) return undefined;
      stream.sent = this.history.version;
      return { saw: "bookmark", version: String(stream.sent), endOfList: false };
    }
    stream.sent = write.version;
    return write.input;
  }

  #writeAfter(version: number): { readonly version: number; readonly input: ReflectorInput } | undefined {
    for (let at = version + 1; at <= this.history.version; at++) {
      const [before, after] = [this.history.at(at - 1), this.history.at(at)];
      for (const [name, object] of after) {
        if (before.get(name) !== object)
          return { version: at, input: { saw: "object", received: received(object), version: String(at) } };
      }
      for (const [name, object] of before) {
        if (!after.has(name))
          return { version: at, input: { saw: "deletion", received: received(object), version: String(at) } };
      }
    }
    return undefined;
  }

  #faulty(fault: Fault): ReflectorInput | undefined {
    const action = this.#action;
    if (fault === "none" || action.do === "wait") return undefined;
    if (fault === "failure" || fault === "too large")
      return { saw: "failure", tooLarge: fault === "too large" };
    if (fault === "busy") return { saw: "error status", status: 429, retryAfterMs: 1_000 };
    if (fault === "too old") return action.do === "locate" ? undefined : tooOld();
    const stream = action.do === "watch" || action.do === "stream list";
    return stream ? { saw: fault } : undefined;
  }
}

function tooOld(): ReflectorInput {
  return { saw: "error status", status: 410, retryAfterMs: undefined };
}

function sorted(objects: ReadonlyMap<string, JsonObject>): [string, JsonObject][] {
  return [...objects].sort(([a], [b]) => (a < b ? -1 : 1));
}

const name = fc.constantFrom("a", "b", "c", "d", "e", "f");

const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("put" as const), name, value: fc.string({ maxLength: 2 }) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("remove" as const), name }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom("pass" as const, "compact" as const, "install" as const, "uninstall" as const),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("go" as const),
      inputs: fc.nat(6),
      fault: fc.constantFrom<Fault>(
        "none",
        "none",
        "failure",
        "end",
        "idle timeout",
        "too old",
        "busy",
        "too large",
      ),
      late: fc.constantFrom(0, 10, 2_000, 200_000),
    }),
  },
);

test.each<Streaming>(["served", "refused", "misunderstood"])(
  "the view equals the server's state in the end, whatever breaks at any moment (streaming lists %s)",
  (streaming) => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), fc.nat(), (events, seed) => {
        const simulation = new Simulation(streaming, seed);
        for (const one of events) simulation.run(one);
        expect(simulation.idle()).toBe(true);
        expect(sorted(simulation.delivered)).toEqual(
          sorted(simulation.history.at(simulation.history.version)),
        );
      }),
      { numRuns: 500 },
    );
  },
);
