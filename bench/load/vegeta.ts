// vegeta: built once from the version pinned in go.mod, into the cache outside the repository.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { withLock } from "../../test/cluster/binaries/lock.ts";
import { cacheFolder, isExecutable } from "../../test/cluster/binaries/places.ts";
import { showProgress } from "../../test/cluster/binaries/progress.ts";
import { output } from "../servers/child-process.ts";
import { onLoadCore } from "../servers/cores.ts";
import type { Attack, Figures, Generator } from "./generator.ts";

const PACKAGE = "github.com/tsenart/vegeta/v12";
/** A build from nothing took one to two minutes on two cores; this is for a slow network. */
const BUILD_WITHIN_MS = 15 * 60_000;
/** Beyond the attack itself: connecting, the last answers, writing the results. */
const GRACE_MS = 30_000;

export async function vegeta(go: string): Promise<Generator> {
  const read = (file: string) => readFileSync(join(import.meta.dirname, file), "utf8");
  const goMod = read("go.mod");
  const version = /vegeta\/v12 (v[\d.]+)/.exec(goMod)?.[1] ?? "";
  const hash = createHash("sha256").update(goMod).update(read("go.sum")).digest("hex").slice(0, 12);
  const platform = `${process.platform}-${process.arch}`;
  const binary = join(cacheFolder(process.env), "load", platform, `vegeta-${version}-${hash}`, "vegeta");
  if (!isExecutable(binary)) {
    const waiting = (pid: number) =>
      process.stderr.write(`waiting for process ${pid}, which is building the same …\n`);
    await withLock(join(dirname(binary), "building.lock"), waiting, () => build(go, binary));
  }
  return { name: `vegeta ${version}`, note: undefined, attack: (attack) => run(binary, attack) };
}

async function build(go: string, binary: string): Promise<void> {
  if (isExecutable(binary)) return;
  mkdirSync(dirname(binary), { recursive: true });
  const end = showProgress(
    process.stderr,
    "building the load generator vegeta, once, usually one to two minutes",
  );
  const draft = `${binary}.${process.pid}`;
  try {
    const args = [
      "-C",
      import.meta.dirname,
      "build",
      "-mod=readonly",
      "-trimpath",
      "-ldflags=-s -w",
      "-o",
      draft,
      PACKAGE,
    ];
    await output(go, args, BUILD_WITHIN_MS);
    renameSync(draft, binary);
    end("built vegeta");
  } catch (error) {
    end("could not build vegeta");
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** What of vegeta's report is used. Its times are nanoseconds. */
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
    // Without a rate, as many workers as connections: each asks again as soon as it was answered.
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
