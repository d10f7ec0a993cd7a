import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createInterface } from "node:readline";
import { refusingPolicies } from "../../core/evaluate/audit.ts";
import { at, isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { reasonOf } from "../../files/reader/bytes.ts";
import { CallError } from "../exit.ts";

/** A refusal that an event or an audit log has recorded. */
export interface RecordedRefusal {
  /** RFC 3339; empty if not recorded. */
  readonly when: string;
  readonly from: "event" | "audit log";
  /** The user; events do not have it. */
  readonly user?: string;
  /** `ClusterPodSchedulingPolicy/etcd-pool`, where it is recorded. */
  readonly policy?: string;
  /** Of the policy when it refused, and now. */
  readonly generation?: number;
  readonly generationNow?: number;
  /** The rule of the policy: `nodeSelector`. */
  readonly rule?: string;
  readonly message: string;
  /** How often, of an event. */
  readonly count?: number;
}

/** How much of a log's file is read, in bytes. */
export interface LogPosition {
  readonly bytes: number;
  readonly size: number;
}

/** The events of an audit log whose response is known. `skipped` is called for lines that are not events, `reached` for each line of a file. */
export async function* auditEvents(
  path: string,
  stdin: AsyncIterable<Uint8Array | string>,
  skipped: () => void,
  reached: (position: LogPosition) => void = () => undefined,
): AsyncIterable<JsonObject> {
  for await (const line of path === "-" ? linesOf(stdin) : fileLines(path, reached)) {
    if (line.trim() === "") continue;
    const event = eventOf(line);
    if (event === undefined) skipped();
    // The same request is logged at each stage.
    else if ((stringAt(event, "stage") ?? "ResponseComplete") === "ResponseComplete") yield event;
  }
}

/** Line by line: audit logs have gigabytes. */
async function* fileLines(path: string, reached: (position: LogPosition) => void): AsyncIterable<string> {
  const found = await stat(path).catch((error: unknown) => {
    throw new CallError(`--audit-log ${path}: ${reasonOf(error)}`);
  });
  const stream = createReadStream(path);
  try {
    for await (const line of createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY })) {
      // A pipe has no size.
      if (found.isFile()) reached({ bytes: stream.bytesRead, size: found.size });
      yield line;
    }
  } catch (error) {
    throw new CallError(`--audit-log ${path}: ${reasonOf(error)}`);
  } finally {
    stream.destroy();
  }
}

async function* linesOf(stream: AsyncIterable<Uint8Array | string>): AsyncIterable<string> {
  let rest = "";
  for await (const part of stream) {
    const lines = `${rest}${typeof part === "string" ? part : Buffer.from(part).toString("utf8")}`.split(
      "\n",
    );
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}

function eventOf(line: string): JsonObject | undefined {
  try {
    const parsed = JSON.parse(line) as Json;
    return isObject(parsed) && stringAt(parsed, "kind") === "Event" && isObject(parsed["objectRef"])
      ? parsed
      : undefined;
  } catch {
    return undefined;
  }
}

/** The user that the API server authorized: the impersonated one behind an impersonation. */
export function userOf(event: JsonObject): JsonObject {
  const { impersonatedUser, user } = event;
  return isObject(impersonatedUser) ? impersonatedUser : isObject(user) ? user : {};
}

/** A refusal by usher, once for each policy that refused; empty where the request was admitted, or refused by another component. */
export function refusalsIn(event: JsonObject): RecordedRefusal[] {
  const code = at(event, "responseStatus", "code");
  const message = stringAt(event, "responseStatus", "message") ?? "";
  if (typeof code !== "number" || code < 400 || !/USHER-[A-Z]\d+|usher/.test(message)) return [];
  const { annotations } = event;
  const by = isObject(annotations) ? refusingPolicies(annotations) : [];
  const refusal = {
    when: stringAt(event, "requestReceivedTimestamp") ?? "",
    from: "audit log" as const,
    user: stringAt(userOf(event), "username") ?? "",
    message,
  };
  return by.length === 0 ? [refusal] : by.map((policy) => ({ ...refusal, ...policy }));
}
