// Pod Security compared with pod-security-admission in Go: the same pods, rounds in turn. Both do the work of their
// admission path. Usher computes the verdict, the message, a cause for each wrong field and the count for metrics; Go
// computes the verdict and the message.
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { Store } from "../../src/core/view/store.ts";
import { evaluateModes } from "../../src/modules/pod-os/security/admission/verdict.ts";
import { Exceptions } from "../../src/modules/pod-os/security/exceptions/exceptions.ts";
import { settingsOf } from "../../src/modules/pod-os/settings.ts";
import { requestFor } from "../../test/builders/request.ts";
import { findGo } from "../../test/cluster/binaries/places.ts";
import { podObject } from "../fixtures/pod.ts";
import { range, ratio, time } from "../report/number.ts";
import { atLeast, atMost, type Result, type Row } from "../report/result.ts";
import { spreadOf } from "../report/statistics.ts";
import { goProgram } from "../servers/go-program.ts";
import type { Servers } from "../servers/servers.ts";

const PODS = 64;
const MODES = { enforce: { level: "restricted", version: "latest" } } as const;
const SETTINGS = settingsOf(DEFAULT_INSTALLATION).podSecurity;
const NO_EXCEPTIONS = new Exceptions([]);
const VIEW = new Store(new Map());
const REQUEST = requestFor(podObject(0, "main") as JsonObject);
const EVALUATE_AT_MOST = 1.2;
const PARSE_AT_LEAST = 2.5;
/** Passes over all pods in a round: some milliseconds each. */
const PASSES = { evaluate: 60, parse: 4 } as const;
type What = keyof typeof PASSES;

/** Pods that pass restricted, and pods that set nothing and fail four of its checks. */
const KINDS: Readonly<Record<string, (i: number) => string>> = {
  "pods that pass": (i) =>
    podText(i, { seccompProfile: { type: "RuntimeDefault" }, runAsNonRoot: true }, true),
  "pods that fail": (i) => podText(i, {}, false),
};

function podText(i: number, securityContext: JsonObject, restricted: boolean): string {
  const pod = podObject(i, "main") as { spec: { containers: JsonObject[] } };
  const context = { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } };
  const containers = pod.spec.containers.map((one) => ({
    ...one,
    securityContext: restricted ? context : {},
  }));
  return JSON.stringify({ ...pod, spec: { ...pod.spec, securityContext, containers } });
}

interface Round {
  /** A pod. */
  readonly nanoseconds: number;
  readonly allowed: number;
}

/** The Go program with these pods: one response per request. */
class GoRounds {
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  constructor(binary: string, pods: string) {
    const child = spawn(binary, [pods], { stdio: ["pipe", "pipe", "inherit"] });
    this.#child = child;
    this.#answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  }

  async round(what: What): Promise<Round> {
    this.#child.stdin?.write(`${what} ${PASSES[what]}\n`);
    const { value } = await this.#answers.next();
    const [nanoseconds = Number.NaN, allowed = Number.NaN] = String(value).split(" ").map(Number);
    return { nanoseconds, allowed };
  }

  close(): void {
    this.#child.stdin?.end();
  }
}

function ownRound(what: What, lines: readonly string[], pods: readonly JsonObject[]): Round {
  let allowed = 0;
  const started = performance.now();
  for (let pass = 0; pass < PASSES[what]; pass++) {
    for (let i = 0; i < lines.length; i++) {
      const pod = what === "parse" ? (JSON.parse(lines[i] ?? "") as JsonObject) : (pods[i] ?? {});
      const metadata = pod["metadata"] as JsonObject;
      const context = { request: REQUEST, view: VIEW, now: 0 };
      const subject = { metadata, spec: pod["spec"] as JsonObject, path: [] };
      const { refused, findings } = evaluateModes(context, NO_EXCEPTIONS, SETTINGS, MODES, subject);
      if (refused === undefined) allowed++;
      else if (findings.length === 0) throw new Error("a refusal names no field");
    }
  }
  const took = (performance.now() - started) * 1e6;
  return { nanoseconds: took / (PASSES[what] * lines.length), allowed };
}

export async function podSecurity(servers: Servers): Promise<Result> {
  const title = "Pod Security, restricted:latest, beside pod-security-admission in Go";
  const go = findGo(process.env);
  if (go === undefined) return { title, rows: [{ what: "Go is not installed", figure: "" }], figures: {} };
  const folder = join(import.meta.dirname, "..", "pod-security");
  const binary = await goProgram(go, { name: "pod-security", folder, source: "." });
  servers.say("measuring Pod Security beside Go …");
  const rows: Row[] = [];
  const figures: Record<string, unknown> = {};
  for (const [kind, textOf] of Object.entries(KINDS)) {
    const lines = Array.from({ length: PODS }, (_, i) => textOf(i));
    const file = join(servers.scratch, "pods.jsonl");
    writeFileSync(file, lines.join("\n"));
    const pods = lines.map((line) => JSON.parse(line) as JsonObject);
    const rounds = new GoRounds(binary, file);
    for (const what of ["evaluate", "parse"] as const) {
      const measured = await sideBySide(rounds, what, lines, pods, servers.quick ? 15 : 60);
      rows.push(rowOf(what, kind, measured));
      figures[`${what}, ${kind}`] = measured;
    }
    rounds.close();
  }
  return { title, rows, figures };
}

interface Measured {
  readonly usher: readonly number[];
  readonly go: readonly number[];
}

async function sideBySide(
  rounds: GoRounds,
  what: What,
  lines: readonly string[],
  pods: readonly JsonObject[],
  times: number,
): Promise<Measured> {
  const usher: number[] = [];
  const go: number[] = [];
  for (let i = 0; i < times + WARM_ROUNDS; i++) {
    const ours = ownRound(what, lines, pods);
    const theirs = await rounds.round(what);
    // A bench of wrong answers measures nothing.
    if (ours.allowed !== theirs.allowed)
      throw new Error(`usher allows ${ours.allowed}, Go ${theirs.allowed}`);
    if (i < WARM_ROUNDS) continue;
    usher.push(ours.nanoseconds / 1e3);
    go.push(theirs.nanoseconds / 1e3);
  }
  return { usher, go };
}

/** The compiler is warm by then. */
const WARM_ROUNDS = 10;

/** Of consecutive rounds, so that slowdowns of the machine affect both. */
function rowOf(what: What, kind: string, { usher, go }: Measured): Row {
  const evaluates = what === "evaluate";
  const ratios = spreadOf(usher.map((ours, i) => (evaluates ? ours / (go[i] ?? 0) : (go[i] ?? 0) / ours)));
  const text = `usher ${time(spreadOf(usher).median)}, Go ${time(spreadOf(go).median)}`;
  return {
    what: evaluates
      ? `evaluate, ${kind}: usher's time over Go's`
      : `parse and evaluate, ${kind}: Go's time over usher's`,
    figure: ratio(ratios.median),
    spread: range(ratios, ratio),
    detail: text,
    target: evaluates ? atMost(EVALUATE_AT_MOST, ratios.median) : atLeast(PARSE_AT_LEAST, ratios.median),
  };
}
