import { errorMessage, isNotFound, responseMessage } from "../../cluster/client/api-response.ts";
import { type ApiResponse, type Client, ConnectionError } from "../../cluster/client/client.ts";
import type { ResourceResolver } from "../../cluster/client/discovery.ts";
import type { SendWrite } from "../../cluster/controller/planned-writes.ts";
import { changesBetween } from "../../core/drift/changes.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { WRITE_METADATA, withoutMetadata } from "../../core/kubernetes/object.ts";
import type { PlannedChange, WriteOutcome } from "../../core/module/command.ts";
import type { PlannedWrite } from "../../core/module/reconciler.ts";

/** Each conflict means that another writer made progress; more than these in a row are not a coincidence. */
const ATTEMPTS = 5;

/** The result of a write. No changes: the object is already as planned. */
export type WriteAttempt =
  | { readonly changes: readonly string[]; readonly warnings: readonly string[] }
  | { readonly failed: string };

/** Makes the writes of a command, with the permissions of its user. */
export class Writer {
  readonly #client: Client;
  readonly #resources: ResourceResolver;
  readonly #send: SendWrite;
  readonly #fieldManager: string;

  constructor(client: Client, resources: ResourceResolver, send: SendWrite, fieldManager: string) {
    this.#client = client;
    this.#resources = resources;
    this.#send = send;
    this.#fieldManager = fieldManager;
  }

  /** The changes of the write: admission runs, nothing is stored. */
  async dryRun(change: PlannedChange): Promise<WriteAttempt> {
    return this.#attempt(change, true).catch((error: unknown) => {
      // Nothing was written yet, so an unreachable API server ends the command.
      if (error instanceof ConnectionError) throw error;
      return { failed: errorMessage(describe(change), error) };
    });
  }

  async write(change: PlannedChange): Promise<WriteAttempt> {
    return this.#attempt(change, false).catch((error: unknown) => ({
      failed: errorMessage(describe(change), error),
    }));
  }

  async #attempt(change: PlannedChange, dryRun: boolean): Promise<WriteAttempt> {
    const { resource, namespace, name } = change.of;
    const path = await this.#resources.pathOf(resource, namespace, name);
    for (let attempt = 1; ; attempt++) {
      const read = await this.#client.request("GET", path);
      const absent = isNotFound(read, name);
      if (!absent && (read.status !== 200 || !isObject(read.body)))
        return { failed: refused("get", change, read) };
      const stored = absent ? undefined : (read.body as JsonObject);
      const planned = change.plan(stored);
      if (planned === "unchanged") return { changes: [], warnings: [] };
      if ("failed" in planned) return planned;
      const response = await this.#sent(planned, dryRun);
      const conflict = response === "conflict" || response.status === 409;
      if (conflict && attempt < ATTEMPTS) continue;
      if (response === "conflict") return { failed: `${describe(change)}: was created meanwhile` };
      if (response.status >= 300) return { failed: refused(verbOf(planned), change, response) };
      const written = "delete" in planned || !isObject(response.body) ? undefined : response.body;
      const outcome = (change.outcome ?? difference)(stored, written);
      if ("changes" in outcome) return { ...outcome, warnings: warningsOf(response) };
      if (!dryRun && outcome.undo !== undefined) await this.#sent(outcome.undo, false);
      return { failed: outcome.failed };
    }
  }

  #sent(write: PlannedWrite, dryRun: boolean): Promise<ApiResponse | "conflict"> {
    return this.#send(write, { fieldManager: this.#fieldManager, dryRun });
  }
}

function describe({ kind, of: { namespace, name } }: PlannedChange): string {
  return `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
}

function verbOf(write: PlannedWrite): string {
  return "delete" in write ? "delete" : "apply" in write ? "apply" : "patch";
}

function difference(stored: JsonObject | undefined, written: JsonObject | undefined): WriteOutcome {
  if (stored === undefined) return { changes: ["+ created"] };
  if (written === undefined) return { changes: ["- deleted"] };
  return {
    changes: changesBetween(
      withoutMetadata(stored, WRITE_METADATA),
      withoutMetadata(written, WRITE_METADATA),
    ),
  };
}

/** Warnings of the API server and webhooks: `299 - "text"`, several on one line. */
function warningsOf({ headers }: ApiResponse): string[] {
  const found = (headers["warning"] ?? "").matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g);
  return [...found].map(([, text = ""]) => text.replace(/\\(.)/g, "$1"));
}

function refused(verb: string, change: PlannedChange, response: ApiResponse): string {
  if (response.status !== 403) return responseMessage(`${verb} ${describe(change)}`, response);
  const message = stringAt(response.body, "message") ?? "forbidden";
  // A denial by a webhook has nothing to do with permissions.
  return message.startsWith("admission webhook") ? message : `not allowed to ${verb}: ${message}`;
}
