// One attack with autocannon, in a separate process. Its histogram has only whole milliseconds, but it reports each
// response with the exact time, from which the percentiles are computed.
import type { EventEmitter } from "node:events";
import { readFileSync } from "node:fs";
import { quantile } from "../report/statistics.ts";
import type { Attack, Figures } from "./generator.ts";

type Autocannon = (options: object, done: (error: Error | null) => void) => EventEmitter;

const [library = "", job = ""] = process.argv.slice(2);
const { default: autocannon } = (await import(library)) as { default: Autocannon };
const attack = JSON.parse(readFileSync(job, "utf8")) as Attack;

const milliseconds: number[] = [];
let other = 0;
const started = performance.now();
await new Promise<void>((resolve, reject) => {
  const run = autocannon(
    {
      url: attack.url,
      connections: attack.connections,
      duration: attack.seconds,
      ...(attack.rate === undefined ? {} : { overallRate: attack.rate }),
      tlsOptions: { ca: readFileSync(attack.ca, "utf8") },
      requests: attack.bodies.map((body) => ({
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      })),
    },
    (error) => (error === null ? resolve() : reject(error)),
  );
  run.on("response", (_client: unknown, status: number, _bytes: number, took: number) => {
    if (status === 200) milliseconds.push(took);
    else other++;
  });
  run.on("reqError", () => other++);
});
const seconds = (performance.now() - started) / 1_000;
if (other > 0 || milliseconds.length === 0) throw new Error(`${other} of the answers were not 200`);
milliseconds.sort((a, b) => a - b);
const figures: Figures = {
  requests: milliseconds.length,
  throughput: milliseconds.length / seconds,
  p50: quantile(milliseconds, 0.5) * 1e3,
  p99: quantile(milliseconds, 0.99) * 1e3,
};
process.stdout.write(JSON.stringify(figures));
