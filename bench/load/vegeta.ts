// vegeta, which sends the load.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { output } from "../servers/child-process.ts";
import { onLoadCore } from "../servers/cores.ts";
import { goProgram } from "../servers/go-program.ts";
import type { Attack, Figures, Generator } from "./generator.ts";

const PACKAGE = "github.com/tsenart/vegeta/v12";
/** Beyond the attack itself: connecting, the last answers, writing the results. */
const GRACE_MS = 30_000;

export async function vegeta(go: string): Promise<Generator> {
  const folder = import.meta.dirname;
  const goMod = readFileSync(join(folder, "go.mod"), "utf8");
  const version = /vegeta\/v12 (v[\d.]+)/.exec(goMod)?.[1] ?? "";
  const binary = await goProgram(go, { name: "vegeta", folder, source: PACKAGE, version });
  return { name: `vegeta ${version}`, note: undefined, attack: (attack) => run(binary, attack) };
}

/** The used part of vegeta's report. Its times are nanoseconds. */
interface Report {
  readonly requests: number;
  readonly throughput: number;
  readonly latencies: { readonly "50th": number; readonly "99th": number };
  readonly status_codes: Readonly<Record<string, number>>;
  readonly errors: readonly string[];
}

async function run(binary: string, attack: Attack): Promise<Figures> {
  const { connections, seconds, scratch } = attack;
  const targets = join(scratch, "targets.json");
  const results = join(scratch, "results.bin");
  writeFileSync(targets, attack.bodies.map((body) => target(attack.url, body)).join("\n"));
  const args = [
    "attack",
    // Without a rate, as many workers as connections: each sends again as soon as it was answered.
    `-rate=${attack.rate ?? 0}`,
    `-workers=${connections}`,
    `-max-workers=${connections}`,
    `-connections=${connections}`,
    `-duration=${seconds}s`,
    // As the API server calls: HTTP/1.1, and a certificate that is checked.
    "-http2=false",
    `-root-certs=${attack.ca}`,
    "-format=json",
    `-targets=${targets}`,
    "-max-body=0",
    `-output=${results}`,
  ];
  await output(...onLoadCore(binary, args), seconds * 1_000 + GRACE_MS);
  const report = JSON.parse(await output(binary, ["report", "-type=json", results], GRACE_MS)) as Report;
  const { requests, throughput, latencies } = report;
  if (requests === 0 || report.status_codes["200"] !== requests) {
    throw new Error(
      `not all answers were 200: ${JSON.stringify(report.status_codes)} ${report.errors.join("; ")}`,
    );
  }
  return { requests, throughput, p50: latencies["50th"] / 1e3, p99: latencies["99th"] / 1e3 };
}

function target(url: string, body: string): string {
  const header = { "Content-Type": ["application/json"], Accept: ["application/json, */*"] };
  return JSON.stringify({ method: "POST", url, header, body: Buffer.from(body).toString("base64") });
}
