// What sends the load. Vegeta where Go is there to build it, else autocannon from npm; docs/decisions/0007 says why.
import { findGo } from "../../test/cluster/binaries/places.ts";
import { autocannon } from "./autocannon.ts";
import { vegeta } from "./vegeta.ts";

/** One run of load against one server. */
export interface Attack {
  /** Where to POST to. */
  readonly url: string;
  /** A file with the authority to trust (PEM). */
  readonly ca: string;
  /** Sent in turn. */
  readonly bodies: readonly string[];
  readonly seconds: number;
  readonly connections: number;
  /** Requests a second. @default as fast as it answers */
  readonly rate?: number;
  /** A directory for what is passed between processes. */
  readonly scratch: string;
}

/** What came of it. Times in µs. */
export interface Figures {
  readonly requests: number;
  /** Answers a second. */
  readonly throughput: number;
  readonly p50: number;
  readonly p99: number;
}

export interface Generator {
  readonly name: string;
  /** What to know before believing its figures. */
  readonly note: string | undefined;
  /** Rejects where a single answer was not a 200: figures of errors say nothing. */
  readonly attack: (attack: Attack) => Promise<Figures>;
}

/** Sets up the best generator that this machine allows. Says so on stderr where it takes long. */
export async function loadGenerator(): Promise<Generator> {
  const go = findGo(process.env);
  if (go !== undefined) return vegeta(go);
  process.stderr.write(
    "Go is not installed, so vegeta can't be built; autocannon from npm sends the load instead. It needs more processor time than the\nserver it measures, so differences look smaller than they are. Install Go (https://go.dev/dl) for figures to rely on.\n",
  );
  return autocannon();
}
