// usher's server over a cluster of as many pods as its argument says, listed page by page as JSON, as an API server answers: what a written
// policy changes is foreseen beside other reviews. A process of its own: prints one JSON line when it listens.
import { setTimeout as sleep } from "node:timers/promises";
import { startAdmission } from "../../src/admission/admission-server.ts";
import type { Fact, Need } from "../../src/core/decision/need.ts";
import type { Json, JsonObject } from "../../src/core/json.ts";
import { SILENT } from "../../src/core/log.ts";
import { assemblyWith, staticSource } from "../fixtures/assembly.ts";
import { podObject } from "../fixtures/pod.ts";
import { roleOf } from "../fixtures/policies.ts";

const POLICIES = 100;
/** Until an API server has answered with a page. */
const ANSWER_MS = 2;

const pods = Number(process.argv[2]);
const texts = Array.from({ length: pods }, (_, i) => JSON.stringify(podObject(i, roleOf(i % POLICIES))));

/** Parsed from text, since parsing is most of the work of a list. */
async function factOf(need: Need): Promise<Fact> {
  if (!("list" in need)) return { absent: "NotFound" };
  await sleep(ANSWER_MS);
  const from = Number(need.list.continue ?? 0);
  const page = JSON.parse(`[${texts.slice(from, from + need.limit).join()}]`) as JsonObject[];
  const found: Json[] = page.map(({ metadata, ...rest }) => {
    const { managedFields: _managers, ...kept } = metadata as JsonObject;
    return { ...rest, metadata: kept };
  });
  const next = from + found.length;
  const isLast = next >= texts.length;
  return { found, complete: isLast, total: texts.length - from, ...(isLast ? {} : { next: String(next) }) };
}

const server = await startAdmission({
  source: { ...staticSource(assemblyWith(POLICIES)), fetch: (needs) => Promise.all(needs.map(factOf)) },
  log: SILENT,
  port: 0,
  opsPort: 0,
});
const { url } = server.webhookAddress;
process.stdout.write(`${JSON.stringify({ ready: true, webhook: url, ca: server.ca })}\n`);
process.once("SIGTERM", () => process.exit(0));
