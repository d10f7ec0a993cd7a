import { responseMessage } from "../../cluster/client/api-response.ts";
import type { ApiResponse } from "../../cluster/client/client.ts";
import { createKindPaths } from "../../cluster/client/discovery.ts";
import { changesBetween } from "../../core/drift/changes.ts";
import { at, isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { admissionDefaults, defaulted } from "../../core/kubernetes/defaults/defaults.ts";
import { groupVersionOf, SERVER_METADATA, withoutMetadata } from "../../core/kubernetes/object.ts";
import { specPath, type WorkloadTable } from "../../core/kubernetes/workloads.ts";
import { beforeUsher } from "../../core/provenance/before.ts";
import { CallError, EXIT } from "../exit.ts";
import { type ApiServerOptions, withApiServer } from "../source/api-server.ts";
import type { WorldEdit } from "./edits.ts";

const FIELD_MANAGER = "usher-what-if";

/** The API server's response to one new object; the JSON output has it as `serverDryRun`. */
export interface DryRunResult {
  /** `Pod shop/web` */
  readonly name: string;
  readonly result: "admitted" | "refused" | "not judged";
  /** Changes of other admission, or why the object is refused. */
  readonly changes: readonly { readonly message: string; readonly by: string }[];
}

export interface DryRuns {
  /** The edits with the objects as other admission leaves them, without those that it refuses. */
  readonly edits: readonly WorldEdit[];
  readonly results: readonly DryRunResult[];
}

/**
 * Sends new workloads and namespaces to the API server as a dry run, with the user's permissions, so that in-tree
 * policies, other webhooks and quotas apply. Usher's own changes are removed again: both views evaluate the object
 * afterwards.
 */
export async function serverDryRun(
  edits: readonly WorldEdit[],
  workloads: WorkloadTable,
  options: ApiServerOptions,
  note: (text: string) => void,
): Promise<DryRuns> {
  const isSent = ({ of, manifest }: WorldEdit) =>
    manifest !== undefined && (of === "workload" || of === "namespace");
  if (!edits.some(isSent)) return { edits, results: [] };
  return withApiServer(options, note, async (client) => {
    const pathOf = createKindPaths(client);
    const results: DryRunResult[] = [];
    const kept: WorldEdit[] = [];
    for (const edit of edits) {
      const { object } = edit.change;
      if (!isSent(edit) || object === undefined) {
        kept.push(edit);
        continue;
      }
      const body = sentObject(object);
      const query = `fieldManager=${FIELD_MANAGER}&force=true&dryRun=All`;
      const response = await client.request("PATCH", `${await pathOf(body)}?${query}`, {
        contentType: "application/apply-patch+yaml",
        body,
      });
      const { result, admitted } = resultOf(edit, body, response, workloads);
      results.push(result);
      if (result.result === "not judged") kept.push(edit);
      else if (admitted !== undefined) kept.push({ ...edit, change: { ...edit.change, object: admitted } });
    }
    return { edits: kept, results };
  });
}

/** Server-side apply accepts neither versions nor managers. */
function sentObject(object: JsonObject): JsonObject {
  const { status: _status, ...rest } = object;
  return withoutMetadata(rest, SERVER_METADATA);
}

function resultOf(
  { name }: WorldEdit,
  sent: JsonObject,
  response: ApiResponse,
  workloads: WorkloadTable,
): { readonly result: DryRunResult; readonly admitted?: JsonObject } {
  const message = stringAt(response.body, "message") ?? responseMessage(`dry run of ${name}`, response);
  if (response.status < 300 && isObject(response.body)) {
    const admitted = beforeUsher(response.body).object;
    const changes = otherChanges(sent, admitted, workloads).map((text) => ({
      message: text,
      by: "other admission",
    }));
    return { result: { name, result: "admitted", changes }, admitted };
  }
  if (response.status === 403 && /User ".*" cannot /.test(message))
    throw new CallError(
      `not allowed to send ${name} as a dry run: ${message}; --server-dry-run=never compares without it`,
      EXIT.failed,
    );
  const by = refusedBy(message);
  // Usher evaluates the object itself. An unsupported dry run gave no other verdict.
  if (/does not support dry run/.test(message) || /\.usher\.dev$/.test(by) || response.status >= 500)
    return { result: { name, result: "not judged", changes: [{ message, by }] } };
  return { result: { name, result: "refused", changes: [{ message, by }] } };
}

const ENGINES: readonly (readonly [pattern: RegExp, prefix: string])[] = [
  [/admission webhook "([^"]+)"/, "webhook "],
  [/(ValidatingAdmissionPolicy|MutatingAdmissionPolicy) '([^']+)'/, ""],
  [/exceeded quota: ([^,\s]+)/, "ResourceQuota "],
  [/violates (PodSecurity)/, ""],
];

/** The component that refused, as far as its message names it. */
export function refusedBy(message: string): string {
  for (const [pattern, prefix] of ENGINES) {
    const found = pattern.exec(message);
    if (found !== null) return `${prefix}${found.slice(1).join(" ")}`;
  }
  return "API server";
}

/** Changes of the response beyond the API server's defaults, in the pod's spec, labels and annotations. */
function otherChanges(sent: JsonObject, admitted: JsonObject, workloads: WorkloadTable): string[] {
  const { group } = groupVersionOf(stringAt(sent, "apiVersion"));
  const workload = workloads.byKind(group, stringAt(sent, "kind") ?? "");
  if (workload === undefined) return [];
  const filled = defaulted(sent, workload);
  const expected = workload.template.length === 0 ? admissionDefaults(filled) : filled;
  const spec = specPath(workload);
  return [
    ...["labels", "annotations"].flatMap((field) =>
      changesBetween(at(expected, "metadata", field), at(admitted, "metadata", field), [field]),
    ),
    ...changesBetween(at(expected, ...spec), at(admitted, ...spec)),
  ].filter((text) => !ADDED_BY_SERVER.test(text));
}

/** The token volume of the service account, as the API server adds it. */
const ADDED_BY_SERVER = /kube-api-access-|kubernetes\.io\/serviceaccount/;
