import { EventEmitter } from "node:events";
import fc from "fast-check";
import { expect, test } from "vitest";
import { BytesInFlight, type Connection } from "./bytes-in-flight.ts";

class TestConnection extends EventEmitter implements Connection {
  closed = false;

  destroy(): void {
    this.closed = true;
    this.emit("close");
  }
}

const connections = (count: number) => Array.from({ length: count }, () => new TestConnection());

test("closes the connections that have held bytes for longest, as many as necessary", () => {
  const [a, b, c] = connections(3) as [TestConnection, TestConnection, TestConnection];
  const closed: number[] = [];
  const inFlight = new BytesInFlight(100, (bytes) => closed.push(bytes));
  inFlight.add(a, 10);
  inFlight.add(b, 40);
  inFlight.add(a, 50);
  expect(closed).toEqual([]);
  inFlight.add(c, 1);
  expect([a.closed, b.closed, c.closed]).toEqual([true, false, false]);
  inFlight.add(c, 60);
  expect([b.closed, c.closed]).toEqual([true, false]);
  inFlight.add(c, 40);
  expect(c.closed).toBe(true);
  expect(closed).toEqual([60, 40, 101]);
});

test("removed bytes, and those of a closed connection, no longer count", () => {
  const [a, b] = connections(2) as [TestConnection, TestConnection];
  const inFlight = new BytesInFlight(100, () => undefined);
  inFlight.add(a, 60);
  inFlight.remove(a, 20);
  inFlight.add(b, 60);
  inFlight.remove(b, 60);
  inFlight.remove(b, 60);
  inFlight.add(b, 60);
  b.destroy();
  inFlight.remove(b, 60);
  inFlight.add(a, 60);
  expect(a.closed).toBe(false);
});

test("a reused connection gets one listener", () => {
  const [a] = connections(1) as [TestConnection];
  const inFlight = new BytesInFlight(100, () => undefined);
  for (let i = 0; i < 100; i++) {
    inFlight.add(a, 10);
    inFlight.remove(a, 10);
  }
  expect(a.listenerCount("close")).toBe(1);
});

test("never exceeds the limit, in any order of requests", () => {
  const step = fc.tuple(
    fc.nat(3),
    fc.integer({ min: 0, max: 60 }),
    fc.constantFrom("add", "remove", "close"),
  );
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const all = connections(4);
      const held = new Map<TestConnection, number>();
      for (const one of all) one.once("close", () => held.delete(one));
      const inFlight = new BytesInFlight(100, () => undefined);
      for (const [which, bytes, action] of steps) {
        const connection = all[which] as TestConnection;
        const before = held.get(connection) ?? 0;
        if (connection.closed) continue;
        if (action === "close") connection.destroy();
        else if (action === "add") {
          held.set(connection, before + bytes);
          inFlight.add(connection, bytes);
        } else {
          held.set(connection, Math.max(0, before - bytes));
          inFlight.remove(connection, bytes);
        }
        const sum = [...held.values()].reduce((total, one) => total + one, 0);
        expect(sum).toBeLessThanOrEqual(100);
      }
    }),
  );
});
