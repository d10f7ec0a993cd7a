// The load generator. Vegeta if Go is available to build it, else autocannon from npm; see docs/decisions/0007.
import { findGo } from "../../test/cluster/binaries/places.ts";
import { autocannon } from "./autocannon.ts";
import { vegeta } from "./vegeta.ts";

/** One run of load against one server. */
export interface Attack {
  /** The URL of the POST requests. */
  readonly url: string;
  /** A file with the CA to trust (PEM). */
  readonly ca: string;
  /** Sent in turn. */
  readonly bodies: readonly string[];
  readonly seconds: number;
  readonly connections: number;
  /** Requests a second. @default as fast as it answers */
  readonly rate?: number;
  /** A directory for files passed between processes. */
  readonly scratch: string;
}

/** The result. Times in µs. */
export interface Figures {
  readonly requests: number;
  /** Answers a second. */
  readonly throughput: number;
  readonly p50: number;
  readonly p99: number;
}

export interface Generator {
  readonly name: string;
  /** Caveats of its figures. */
  readonly note: string | undefined;
  /** Rejects if a single response was not a 200: figures of errors are meaningless. */
  readonly attack: (attack: Attack) => Promise<Figures>;
}

/** Sets up the best generator that this machine allows. Reports on stderr if that takes long. */
export async function loadGenerator(): Promise<Generator> {
  const go = findGo(process.env);
  if (go !== undefined) return vegeta(go);
  process.stderr.write(
    "Go is not installed, so vegeta can't be built; autocannon from npm sends the load instead. It needs more processor time than the\nserver it measures, so differences look smaller than they are. Install Go (https://go.dev/dl) for figures to rely on.\n",
  );
  return autocannon();
}
