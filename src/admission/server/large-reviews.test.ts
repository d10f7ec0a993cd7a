import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { LARGE_BYTES, LargeReviews, namespaceIn, RoundRobin } from "./large-reviews.ts";

/** A review as the API server writes it, with a body of this length. */
function reviewOf(namespace: string, length: number, name = "web"): Buffer {
  const head = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","kind":{"group":"","version":"v1","kind":"Pod"},"name":${JSON.stringify(name)},"namespace":"${namespace}","operation":"CREATE","object":{"a":"`;
  return Buffer.from(`${head}${"x".repeat(Math.max(0, length - head.length - 4))}"}}}`);
}

function requestOf(body: Buffer): IncomingMessage {
  const request = new PassThrough() as unknown as PassThrough & { headers: object };
  request.headers = { "content-length": String(body.length) };
  request.end(body);
  return request as unknown as IncomingMessage;
}

/** Sends bodies in this order; the log has the evaluated bodies, and `-` for each turn of the loop. */
async function served(bodies: readonly (readonly [string, number])[]): Promise<string[]> {
  const log: string[] = [];
  const turns: (() => void)[] = [];
  const queue = new LargeReviews((run) => turns.push(run));
  for (const [namespace, length] of bodies) {
    const request = requestOf(reviewOf(namespace, length));
    queue.take(request, (inTurn) => {
      let received = 0;
      request.on("data", (chunk: Buffer) => {
        received += chunk.length;
      });
      request.on("end", () => {
        inTurn(() => log.push(`${namespace} ${received === length ? "whole" : `cut at ${received}`}`));
      });
    });
    // Its first bytes arrive.
    await turn();
    await turn();
  }
  for (let run = turns.shift(); run !== undefined; run = turns.shift()) {
    log.push("-");
    run();
    for (let i = 0; i < 4; i++) await turn();
  }
  return log;
}

const LARGE = LARGE_BYTES + 1;

test("evaluates small bodies immediately and one large body per turn, with namespaces in turn", async () => {
  expect(
    await served([
      ["storm", LARGE],
      ["storm", 2 * LARGE],
      ["storm", LARGE],
      ["storm", LARGE],
      ["shop", LARGE],
      ["shop", 1_000],
      ["bank", LARGE],
    ]),
  ).toEqual([
    "shop whole",
    ...["-", "storm whole", "-", "shop whole", "-", "bank whole"],
    ...["-", "storm whole", "-", "storm whole", "-", "storm whole", "-"],
  ]);
});

test("a body without an announced length gets no turn", () => {
  const queue = new LargeReviews(() => expect.unreachable());
  const request = requestOf(Buffer.alloc(LARGE));
  request.headers = {};
  let read = false;
  queue.take(request, () => {
    read = true;
  });
  expect(read).toBe(true);
});

/** A request whose body arrives as the test writes it. */
function arriving(namespace: string, length: number) {
  const stream = new PassThrough() as PassThrough & { headers?: object };
  stream.headers = { "content-length": String(length) };
  const body = reviewOf(namespace, length);
  stream.write(body.subarray(0, 1_000));
  return {
    request: stream as unknown as IncomingMessage,
    write: (bytes: Buffer) => stream.write(bytes),
    finish: () => stream.end(body.subarray(1_000)),
  };
}

test("20 stalling clients delay a large body by a tenth of a second in total, not by a turn each", async () => {
  const queue = new LargeReviews();
  const stalled = Array.from({ length: 20 }, (_, i) => arriving(`forged-${i}`, LARGE));
  for (const { request } of stalled) queue.take(request, () => request.resume());
  await turn();
  await turn();
  const request = requestOf(reviewOf("shop", LARGE));
  const started = performance.now();
  await new Promise<void>((resolve) => {
    queue.take(request, (inTurn) => request.on("end", () => inTurn(resolve)).resume());
  });
  // A turn each would be 5 s; the rest of the second is for a busy machine.
  expect(performance.now() - started).toBeLessThan(1_000);
});

test("a steady stream keeps its turn, for a quarter of a second at most", async () => {
  const queue = new LargeReviews();
  const slow = arriving("shop", 20 * 1024 * 1024);
  let nextAfter = 0;
  const started = performance.now();
  queue.take(slow.request, () => slow.request.resume());
  queue.take(requestOf(reviewOf("bank", LARGE)), () => {
    nextAfter = performance.now() - started;
  });
  const chunk = Buffer.alloc(LARGE_BYTES);
  while (nextAfter === 0) {
    slow.write(chunk);
    await turn();
  }
  expect(nextAfter).toBeGreaterThanOrEqual(240);
});

test("bodies that lost their turn and end together are evaluated one per turn", async () => {
  const turns: (() => void)[] = [];
  const queue = new LargeReviews((run) => turns.push(run));
  const judged: string[] = [];
  const late = ["storm", "bank", "shop"].map((name) => ({ name, ...arriving(name, LARGE) }));
  for (const { name, request } of late)
    queue.take(request, (inTurn) => {
      judged.push(`${name} starts`);
      request.on("end", () => inTurn(() => judged.push(name))).resume();
    });
  await turn();
  await turn();
  for (let i = 0; i < late.length; i++) {
    turns.shift()?.();
    await vi.waitFor(() => expect(turns).toHaveLength(1));
  }
  expect(judged.splice(0)).toEqual(["storm starts", "bank starts", "shop starts"]);
  // The last turn found the queue empty.
  turns.shift()?.();
  for (const { finish } of late) finish();
  await turn();
  await turn();
  expect(judged).toEqual([]);
  for (const count of [1, 2, 3]) {
    turns.shift()?.();
    expect(judged).toHaveLength(count);
  }
});

test("starts again after it was idle", async () => {
  const turns: (() => void)[] = [];
  const queue = new LargeReviews((run) => turns.push(run));
  for (let i = 0; i < 3; i++) {
    const request = requestOf(reviewOf("shop", LARGE));
    const read = new Promise<void>((resolve) => {
      queue.take(request, (inTurn) => request.on("end", () => inTurn(resolve)).resume());
    });
    await turn();
    await turn();
    turns.shift()?.();
    await read;
    turns.shift()?.();
    expect(turns).toEqual([]);
  }
});

test("continues after a client that leaves in its turn, or before it", async () => {
  const turns: (() => void)[] = [];
  const queue = new LargeReviews((run) => turns.push(run));
  const [first, second, third] = [1, 2, 3].map(() => requestOf(reviewOf("shop", LARGE)));
  const seen: string[] = [];
  for (const [name, request] of Object.entries({ first, second, third }))
    if (request !== undefined)
      queue.take(request, (inTurn) => {
        seen.push(name);
        if (name === "third") inTurn(() => undefined);
      });
  await turn();
  await turn();
  turns.shift()?.();
  first?.destroy();
  second?.destroy();
  await turn();
  for (let run = turns.shift(); run !== undefined; run = turns.shift()) run();
  expect(seen).toEqual(["first", "third"]);
});

test("for any arrivals: a key waits for at most one item of each other key, and its own stay in order", () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 4 }), { maxLength: 40 }), (keys) => {
      const queue = new RoundRobin<{ readonly key: number; readonly i: number }>();
      for (const [i, key] of keys.entries()) queue.add(String(key), { key, i });
      const order: { readonly key: number; readonly i: number }[] = [];
      for (let item = queue.next(); item !== undefined; item = queue.next()) order.push(item);
      expect(order).toHaveLength(keys.length);
      for (const key of new Set(keys)) {
        const mine = order.filter((one) => one.key === key).map(({ i }) => i);
        expect(mine).toEqual(mine.toSorted((a, b) => a - b));
        // The n-th item of a key comes after at most n items of each other key.
        for (const [nth, { i }] of order.filter((one) => one.key === key).entries()) {
          const before = order.slice(
            0,
            order.findIndex((one) => one.i === i),
          );
          for (const other of new Set(keys))
            expect(before.filter((one) => one.key === other).length).toBeLessThanOrEqual(nth + 1);
        }
      }
    }),
  );
});

test.each<[string, Buffer | null, string]>([
  ["the API server's envelope", reviewOf("shop", 500), "shop"],
  ["a name that looks like a namespace", reviewOf("shop", 500, '"namespace":"bank"'), "shop"],
  ["no namespace", Buffer.from('{"kind":"AdmissionReview","request":{"uid":"u"}}'), ""],
  ["a namespace beyond the envelope", Buffer.from(`${" ".repeat(5_000)}"namespace":"shop"`), ""],
  ["an unterminated string", Buffer.from('{"namespace":"shop'), ""],
  ["nothing", null, ""],
])("finds the namespace of %s", (_what, body, namespace) => {
  expect(namespaceIn(body)).toBe(namespace);
});
