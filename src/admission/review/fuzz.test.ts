import { expect, test } from "vitest";
import {
  type Got,
  keeping,
  post,
  responseOf,
  review,
  testSource,
} from "../../../test/support/admission/example-cluster.ts";
import { hostileBody, numbers } from "../../../test/support/admission/hostile-body.ts";
import { startTestServer } from "../../../test/support/admission/server.ts";
import { SILENT } from "../../core/log.ts";
import type { HttpResponse } from "../http/http-response.ts";
import { ReviewHandler } from "./handle.ts";
import { envelopeOf } from "./structure.ts";

/** More with `npm run test:long`. */
const RUNS = Number(process.env["USHER_FUZZ_RUNS"] ?? 2_000);

/** Requests over a real connection cost a hundred times as much, and test the same code. */
const SOCKET_RUNS = Math.min(RUNS, 300);

const VALID = JSON.stringify(review({ oldObject: { metadata: { name: "web" } }, operation: "UPDATE" }));
const PATHS = ["/mutate", "/validate", "/validate/welcome", "/validate/pool", "/mutate/label?timeout=1s"];

const PODS = {
  request: {
    operation: "UPDATE",
    resource: { group: "", version: "v1", resource: "pods" },
    subResource: undefined,
  },
};
const TOO_LONG = "the body has more than 1000 bytes";

/** A well-formed response to the request's uid, or an HTTP error of one line. */
function wellFormed({ status, body }: Pick<HttpResponse, "status" | "body">): void {
  if (status === 200) {
    const { uid, allowed, status: refusal } = responseOf({ body });
    if (typeof uid !== "string" || uid === "") throw new Error(`an answer to nobody: ${body}`);
    if (typeof allowed !== "boolean") throw new Error(`neither yes nor no: ${body}`);
    if (allowed !== (refusal === undefined)) throw new Error(`a refusal without a status: ${body}`);
  } else if (status !== 400 && status !== 413) throw new Error(`status ${status}: ${body}`);
  else if (!/^[^\n]+\n$/.test(body)) throw new Error(`not one line: ${body}`);
  if (/\.ts:\d|node:internal|\bat \w+ \(/.test(body)) throw new Error(`a stack trace: ${body}`);
}

test(`${RUNS} hostile bodies each get a well-formed answer`, { timeout: 600_000 }, async () => {
  const faults: object[] = [];
  const log = { ...SILENT, error: (facts: object, message: string) => faults.push({ ...facts, message }) };
  const { handle } = new ReviewHandler({ source: testSource(), log });
  const seed = Number(process.env["USHER_FUZZ_SEED"] ?? 20_261_115);
  const next = numbers(seed);
  const seen = new Map<number, number>();
  const cut = new Map<number, number>();
  const admitted: string[] = [];
  for (let run = 0; run < RUNS; run++) {
    const body = hostileBody(VALID, next);
    const path = PATHS[next(PATHS.length)] ?? "/mutate";
    try {
      const reply = await handle(body, path);
      wellFormed(reply);
      seen.set(reply.status, (seen.get(reply.status) ?? 0) + 1);
      const first = await handle(body, path, undefined, undefined, undefined, TOO_LONG);
      wellFormed(first);
      if (path.startsWith("/validate") && first.status === 200 && responseOf(first)["allowed"] === true)
        admitted.push(body.toString());
      cut.set(first.status, (cut.get(first.status) ?? 0) + 1);
    } catch (error) {
      throw new Error(`seed ${seed}, run ${run}, ${path}: ${JSON.stringify(body.toString())}`, {
        cause: error,
      });
    }
  }
  // Both kinds of responses occurred, so the bodies were neither all invalid nor all valid.
  expect(seen.get(200)).toBeGreaterThan(RUNS / 10);
  expect(seen.get(400)).toBeGreaterThan(RUNS / 10);
  expect(cut.get(200)).toBeGreaterThan(RUNS / 10);
  expect(cut.get(413)).toBeGreaterThan(RUNS / 10);
  // None was parsed, and no hook matches requests that are not about pods.
  for (const text of admitted)
    expect(JSON.parse(envelopeOf(Buffer.from(text))?.toString() ?? "")).not.toMatchObject(PODS);
  expect(faults).toEqual([]);
  expect(Object.keys(Object.prototype)).toEqual([]);
});

test(`answers ${SOCKET_RUNS} hostile bodies over one connection`, { timeout: 60_000 }, async () => {
  const server = await startTestServer();
  const agent = keeping();
  try {
    const next = numbers(7);
    const headers = { "content-type": "application/json" };
    for (let run = 0; run < SOCKET_RUNS; run++) {
      const body = hostileBody(VALID, next);
      const url = `${server.webhookAddress.url}${PATHS[run % PATHS.length]}`;
      const got: Got = await post(url, server.ca, body, { agent, headers });
      wellFormed(got);
    }
  } finally {
    agent.destroy();
    await server.close();
  }
});
