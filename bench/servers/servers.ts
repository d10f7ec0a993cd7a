// Shared by the parts: the servers, started when the first part needs them, and a directory that is removed afterwards.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeSource } from "../fixtures/policies.ts";
import { type Child, startServer } from "./child-process.ts";

const ROOT = join(import.meta.dirname, "..", "..");
/** As a user starts it from a clone. It execs Node, so its pid is the server's. */
export const USHER = join(ROOT, "bin", "usher");
const BARE = join(import.meta.dirname, "bare-server.ts");
export const EXAMPLE_SOURCE = join(ROOT, "examples", "cluster");

/** A server and the file with its CA. */
export interface Served extends Child {
  readonly name: string;
  readonly ca: string;
}

export class Servers {
  readonly quick: boolean;
  readonly scratch = mkdtempSync(join(tmpdir(), "usher-bench-"));
  readonly #servers = new Map<string, Promise<Served>>();

  constructor(quick: boolean) {
    this.quick = quick;
  }

  /** Reports progress on stderr: the table on stdout comes last. */
  say(text: string): void {
    process.stderr.write(`${text}\n`);
  }

  source(policies: number): string {
    return join(this.scratch, `source-${policies}`);
  }

  /** usher with this many policies; always the same process. */
  usher(policies: number): Promise<Served> {
    return this.#serve(`usher-${policies}`, () => {
      this.say(`starting usher with ${policies} policies …`);
      return startUsher(writeSource(this.scratch, policies));
    });
  }

  /** The reference for usher. */
  bare(): Promise<Served> {
    return this.#serve("bare", () => startServer(process.execPath, [BARE]));
  }

  async close(): Promise<void> {
    const servers = await Promise.allSettled(this.#servers.values());
    await Promise.all(servers.map((one) => (one.status === "fulfilled" ? one.value.stop() : undefined)));
    rmSync(this.scratch, { recursive: true, force: true });
  }

  #serve(name: string, start: () => Promise<Child>): Promise<Served> {
    const known = this.#servers.get(name);
    if (known !== undefined) return known;
    const made = start().then((child) => servedAs(this.scratch, name, child));
    this.#servers.set(name, made);
    return made;
  }
}

/** A started server under a name, with its CA file written. */
export function servedAs(scratch: string, name: string, child: Child): Served {
  const ca = join(scratch, `${name}-ca.pem`);
  writeFileSync(ca, child.ready.ca);
  return { ...child, name, ca };
}

/** usher as a user starts it, on free ports. */
export function startUsher(source: string): Promise<Child> {
  const ports = ["--port", "0", "--ops-port", "0", "--drain-seconds", "0"];
  return startServer(USHER, ["serve", "--source", source, ...ports, "-o", "json"]);
}
