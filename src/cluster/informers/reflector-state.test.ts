import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../core/json.ts";
import { REFLECTOR_LIMITS, type ReflectorLimits } from "./reflector-limits.ts";
import { ReflectorState } from "./reflector-state.ts";
import type { Action, ReceivedObject, ReflectorInput, ReflectorStep } from "./reflector-steps.ts";

function received(name: string, value = ""): ReceivedObject {
  return { namespace: "ns", name, object: { metadata: { name }, value } };
}

function object(name: string, version: number, value = ""): ReflectorInput {
  return { saw: "object", received: received(name, value), version: String(version) };
}

function page(names: readonly string[], version: number, next?: string): ReflectorInput {
  return { saw: "page", items: names.map((name) => received(name)), version: String(version), next };
}

function refusal(status: number, retryAfterMs?: number): ReflectorInput {
  return { saw: "error status", status, retryAfterMs };
}

const END_OF_LIST = (version: number): ReflectorInput => ({
  saw: "bookmark",
  version: String(version),
  endOfList: true,
});
const BOOKMARK = (version: number): ReflectorInput => ({
  saw: "bookmark",
  version: String(version),
  endOfList: false,
});
const FAILURE: ReflectorInput = { saw: "failure", tooLarge: false };

/** A state machine with a manual clock, and its changes so far. */
class Rig {
  readonly state: ReflectorState;
  readonly delivered = new Map<string, JsonObject>();
  now = 1_000_000;
  action: Action;
  synced = 0;

  constructor(limits: Partial<ReflectorLimits> = {}) {
    this.state = new ReflectorState("things", () => 0.5, { ...REFLECTOR_LIMITS, ...limits });
    this.action = this.state.start(this.now);
  }

  see(...inputs: readonly ReflectorInput[]): ReflectorStep {
    let last: ReflectorStep = { changes: [], synced: false, action: undefined };
    for (const input of inputs) {
      last = this.state.step(input, this.now);
      for (const change of last.changes) {
        const key = `${change.namespace}/${change.name}`;
        if (change.object === undefined) this.delivered.delete(key);
        else this.delivered.set(key, change.object);
      }
      if (last.synced) this.synced += 1;
      if (last.action !== undefined) this.action = last.action;
    }
    return last;
  }

  /** Completes a delay and returns it. */
  pass(): number {
    if (this.action.do !== "wait") throw new Error(`it does not wait but ${this.action.do}`);
    const { ms } = this.action;
    this.now += ms;
    this.see({ saw: "timer" });
    return ms;
  }

  names(): string[] {
    return [...this.delivered.keys()].map((key) => key.replace("ns/", "")).sort();
  }

  /** Up to a watch at version 10 that has seen a and b. */
  watching(): this {
    this.see({ saw: "served" }, object("a", 4), object("b", 9), END_OF_LIST(10));
    expect(this.synced).toBe(1);
    return this;
  }
}

test("the idle timeout is longer than any healthy watch", () => {
  const [shortest, longest] = REFLECTOR_LIMITS.watchSeconds;
  expect(shortest * 1_000).toBeGreaterThan(REFLECTOR_LIMITS.shortWatchMs);
  expect(REFLECTOR_LIMITS.idleTimeoutMs).toBeGreaterThan(longest * 1_000 + 2_000);
});

describe("the initial list", () => {
  test("is a stream, complete at its bookmark, and continues as a watch", () => {
    const rig = new Rig();
    expect(rig.action).toEqual({ do: "locate" });
    rig.see({ saw: "served" });
    expect(rig.action).toEqual({ do: "stream list", timeoutSeconds: 19 });
    rig.see(object("b", 9), object("a", 4), BOOKMARK(9));
    expect(rig.synced).toBe(0);
    expect(rig.see(END_OF_LIST(10))).toMatchObject({ synced: true, action: undefined });
    rig.see(object("c", 11), { saw: "deletion", received: received("a"), version: "12" });
    expect(rig.names()).toEqual(["b", "c"]);
    rig.now += 400_000;
    rig.see({ saw: "end" });
    expect(rig.action).toMatchObject({ do: "watch", version: "12" });
  });

  test.each([400, 405, 422])("is paged if the server refuses a stream with %i", (status) => {
    const rig = new Rig();
    rig.see({ saw: "served" }, refusal(status));
    expect(rig.action).toEqual({ do: "list", next: undefined });
    rig.see(page(["a", "b"], 7, "token"));
    expect(rig.action).toEqual({ do: "list", next: "token" });
    expect(rig.synced).toBe(0);
    expect(rig.see(page(["c"], 7))).toMatchObject({ synced: true, action: { do: "watch", version: "7" } });
    expect(rig.names()).toEqual(["a", "b", "c"]);
    // Does not request a stream again.
    rig.see(refusal(410));
    expect(rig.action).toEqual({ do: "list", next: undefined });
  });

  test("is paged if a stream is accepted but never complete", () => {
    const rig = new Rig();
    rig.see({ saw: "served" }, object("a", 4), { saw: "idle timeout" });
    rig.pass();
    expect(rig.action.do).toBe("stream list");
    rig.see(object("a", 4), { saw: "idle timeout" });
    rig.pass();
    expect(rig.action.do).toBe("list");
  });

  test("restarts after a broken stream, and removes objects that were deleted in the meantime", () => {
    const rig = new Rig();
    rig.see({ saw: "served" }, object("a", 4), object("b", 9), FAILURE);
    rig.pass();
    expect(rig.action.do).toBe("stream list");
    rig.see(object("b", 9), END_OF_LIST(12));
    expect(rig.names()).toEqual(["b"]);
  });

  test("repeats the page that failed, and restarts if its token expired", () => {
    const rig = new Rig();
    rig.see({ saw: "served" }, refusal(400), page(["a", "b"], 7, "token"), FAILURE);
    rig.pass();
    expect(rig.action).toEqual({ do: "list", next: "token" });
    rig.see(refusal(410));
    expect(rig.action).toEqual({ do: "list", next: undefined });
    rig.see(page(["b", "c"], 20));
    expect(rig.names()).toEqual(["b", "c"]);
    expect(rig.action).toMatchObject({ do: "watch", version: "20" });
  });

  test("reads pages after a streamed object over the limit", () => {
    const rig = new Rig();
    rig.see({ saw: "served" }, { saw: "failure", tooLarge: true });
    rig.pass();
    expect(rig.action).toEqual({ do: "list", next: undefined });
  });

  test("keeps an object that a page left out, and adds none", () => {
    const rig = new Rig();
    rig.see({ saw: "served" }, refusal(400), page(["a", "b"], 7), refusal(410));
    const skipped = (name: string) => ({ skipped: { namespace: "ns", name } });
    rig.see({ ...page([], 20, "token"), ...skipped("a") } as ReflectorInput);
    rig.see({ ...page([], 20), ...skipped("new") } as ReflectorInput);
    expect(rig.names()).toEqual(["a"]);
  });
});

describe("a watch", () => {
  test("that ended at its timeout is resumed at once, from the last version or bookmark", () => {
    const rig = new Rig().watching();
    rig.see(object("c", 12), BOOKMARK(30));
    rig.now += 300_000;
    expect(rig.see({ saw: "end" }).action).toMatchObject({ do: "watch", version: "30" });
    expect(rig.state.relists).toBe(0);
  });

  test("that ended at once is resumed after a delay", () => {
    const rig = new Rig().watching();
    rig.see({ saw: "end" });
    expect(rig.action.do).toBe("wait");
    rig.pass();
    expect(rig.action).toMatchObject({ do: "watch", version: "10" });
  });

  test("that broke is resumed after a delay, without a list", () => {
    const rig = new Rig().watching();
    rig.see(FAILURE);
    rig.pass();
    expect(rig.action).toMatchObject({ do: "watch", version: "10" });
  });

  test("that exceeded the idle timeout is resumed at once", () => {
    const rig = new Rig().watching();
    rig.now += 75_000;
    expect(rig.see({ saw: "idle timeout" }).action).toMatchObject({ do: "watch", version: "10" });
  });

  test("that expired relists at once, keeps objects until the list is complete, and reports deletes", () => {
    const rig = new Rig().watching();
    rig.see(refusal(410));
    expect(rig.action.do).toBe("stream list");
    expect(rig.names()).toEqual(["a", "b"]);
    rig.see(object("b", 9), object("c", 40));
    expect(rig.names()).toEqual(["a", "b", "c"]);
    rig.see(END_OF_LIST(50));
    expect(rig.names()).toEqual(["b", "c"]);
    expect(rig.state.relists).toBe(1);
  });

  test("that expired during an outage relists as soon as the server is back", () => {
    const rig = new Rig().watching();
    for (let i = 0; i < 5; i++) {
      rig.see(FAILURE);
      rig.pass();
    }
    rig.see(refusal(410));
    expect(rig.action.do).toBe("stream list");
  });

  test("that expires repeatedly backs off", () => {
    const rig = new Rig().watching();
    rig.see(refusal(410));
    rig.see(refusal(410));
    expect(rig.action.do).toBe("wait");
  });

  test("that is rejected relists; after transient errors it is repeated first", () => {
    const rig = new Rig().watching();
    rig.see(refusal(400));
    rig.pass();
    expect(rig.action.do).toBe("stream list");
    const other = new Rig().watching();
    for (let i = 1; i < REFLECTOR_LIMITS.watchRejections; i++) {
      other.see(refusal(504));
      other.pass();
      expect(other.action).toMatchObject({ do: "watch", version: "10" });
    }
    other.see(refusal(504));
    other.pass();
    expect(other.action.do).toBe("stream list");
  });
});

describe("back-off", () => {
  test("doubles from 0.8 s to 30 s with jitter, and resets after two minutes without failure", () => {
    const rig = new Rig().watching();
    const waits: number[] = [];
    for (let i = 0; i < 8; i++) {
      rig.see(FAILURE);
      waits.push(rig.pass());
    }
    expect(waits).toEqual([600, 1200, 2400, 4800, 9600, 19_200, 22_500, 22_500]);
    rig.now += 119_999;
    rig.see(FAILURE);
    expect(rig.pass()).toBe(22_500);
    rig.now += 120_000;
    rig.see(FAILURE);
    expect(rig.pass()).toBe(600);
  });

  test("is at least Retry-After", () => {
    const rig = new Rig().watching();
    rig.see(refusal(429, 7_000));
    expect(rig.pass()).toBe(7_000);
    expect(rig.action).toMatchObject({ do: "watch", version: "10" });
    rig.see(refusal(503, 1_000));
    expect(rig.pass()).toBe(1_200);
  });
});

describe("a resource that is not served", () => {
  test("is discovered at intervals, and listed as soon as it is served", () => {
    const rig = new Rig();
    rig.see({ saw: "not served" });
    expect(rig.pass()).toBe(10_000);
    expect(rig.action).toEqual({ do: "locate" });
    rig.see({ saw: "served" }, object("a", 4), END_OF_LIST(5));
    expect(rig.names()).toEqual(["a"]);
  });

  test("loses its objects only after several discoveries", () => {
    const rig = new Rig().watching();
    rig.see(refusal(404));
    rig.pass();
    for (let i = 1; i < REFLECTOR_LIMITS.absentDiscoveries; i++) {
      rig.see({ saw: "not served" });
      expect(rig.names()).toEqual(["a", "b"]);
      rig.pass();
    }
    rig.see({ saw: "not served" });
    expect(rig.names()).toEqual([]);
    rig.pass();
    rig.see({ saw: "served" }, object("b", 60), END_OF_LIST(61));
    expect(rig.names()).toEqual(["b"]);
  });
});

test("any sequence of inputs yields an action and never throws", () => {
  const version = fc.nat(50).map(String);
  const anything: fc.Arbitrary<ReflectorInput> = fc.oneof(
    fc.constantFrom<ReflectorInput>(
      { saw: "served" },
      { saw: "not served" },
      { saw: "end" },
      { saw: "idle timeout" },
      { saw: "timer" },
      FAILURE,
      { saw: "failure", tooLarge: true },
    ),
    fc.record({
      saw: fc.constantFrom("object" as const, "deletion" as const),
      received: fc.constantFrom("a", "b").map((name) => received(name)),
      version,
    }),
    fc.record({ saw: fc.constant("bookmark" as const), version, endOfList: fc.boolean() }),
    fc.record({
      saw: fc.constant("page" as const),
      items: fc.constant([]),
      version,
      next: fc.option(fc.constant("t"), { nil: undefined }),
    }),
    fc.constantFrom(400, 401, 403, 404, 410, 429, 500, 503, 504).map((status) => refusal(status)),
  );
  fc.assert(
    fc.property(fc.array(anything), (inputs) => {
      const rig = new Rig();
      rig.see(...inputs);
      if (rig.action.do === "wait") expect(rig.action.ms).toBeGreaterThan(0);
      // From there a healthy server leads to a watch.
      for (let i = 0; i < 10 && rig.action.do !== "watch"; i++) {
        if (rig.action.do === "wait") rig.pass();
        else if (rig.action.do === "locate") rig.see({ saw: "served" });
        else if (rig.action.do === "list") rig.see(page(["z"], 99));
        else {
          rig.see(object("z", 70), END_OF_LIST(99));
          break;
        }
      }
      rig.see(object("y", 100));
      expect(rig.names()).toContain("y");
    }),
  );
});
