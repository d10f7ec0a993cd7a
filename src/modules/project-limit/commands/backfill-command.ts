import { at, isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import type { CommandCode, PlannedChange } from "../../../core/module/command.ts";
import type { BackfillArgs } from "../declaration.ts";
import { REQUESTER, requesterOf } from "../projects.ts";
import { readAuditLog } from "./audit-log.ts";
import { readOwners } from "./owners-csv.ts";

/** The creator of a namespace, according to a file. */
export interface NamespaceOwnership {
  readonly namespace: string;
  readonly user: string;
  /** Of an audit log: when the creation was requested. */
  readonly created?: number;
}

export interface Ownerships {
  readonly found: readonly NamespaceOwnership[];
  readonly errors: readonly string[];
}

/** A namespace is created within the time limit of a request; further apart, the name was reused. */
const CREATION_MS = 60_000;

/** Written at a time: enough to finish thousands in minutes, and few for an API server. */
const PARALLEL = 4;

/** Sets requesters. Existing ones stay: only exempt or trusted users may choose another, by hand. */
export const backfillCode: CommandCode<BackfillArgs> = {
  needsView: () => false,
  check: ({ args: { file } }) => (file.text.trim() === "" ? `${file.name}: has no lines` : undefined),
  run: ({ args: { file } }) => {
    const { found, errors } = isAuditLog(file.text) ? readAuditLog(file) : readOwners(file);
    return { changes: found.map(annotation), errors, parallel: PARALLEL };
  },
};

function isAuditLog(text: string): boolean {
  return text.trimStart().startsWith("{");
}

function annotation(owner: NamespaceOwnership): PlannedChange {
  const of = { resource: "namespaces", name: owner.namespace };
  return { kind: "Namespace", of, plan: (stored) => plan(owner, of, stored) };
}

function plan(
  { user, created }: NamespaceOwnership,
  of: PlannedChange["of"],
  stored: JsonObject | undefined,
): ReturnType<PlannedChange["plan"]> {
  // An audit log names many namespaces that no longer exist.
  if (stored === undefined) return created === undefined ? { failed: "not found" } : "unchanged";
  const requester = requesterOf(stored) ?? "";
  if (requester === user) return "unchanged";
  if (requester !== "") return { failed: `requester is ${requester} already; kept` };
  if (created !== undefined && !isCreatedAt(stored, created)) return "unchanged";
  const resourceVersion = stringAt(stored, "metadata", "resourceVersion") ?? "";
  const path = isObject(at(stored, "metadata", "annotations"))
    ? { path: `/metadata/annotations/${REQUESTER.replace("/", "~1")}`, value: user }
    : { path: "/metadata/annotations", value: { [REQUESTER]: user } };
  return { patch: [{ op: "add", ...path }], of, resourceVersion };
}

/** Whether this is the namespace that was created then, and no later one of the same name. */
function isCreatedAt(stored: JsonObject, created: number): boolean {
  const time = Date.parse(stringAt(stored, "metadata", "creationTimestamp") ?? "");
  return Math.abs(time - created) <= CREATION_MS;
}
