import { errorMessage, isNotFound, responseMessage } from "../../cluster/client/api-response.ts";
import { type ApiResponse, type Client, ConnectionError } from "../../cluster/client/client.ts";
import type { ResourceResolver } from "../../cluster/client/discovery.ts";
import { reapplyRequested, requestReapply } from "../../core/drift/drift-scan.ts";
import { injectionsIn } from "../../core/drift/injections.ts";
import { resourceName } from "../../core/evaluate/request.ts";
import { at, isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { specPath } from "../../core/kubernetes/workloads.ts";
import type { Module } from "../../core/module/module.ts";
import { changesBetween } from "./changes.ts";
import type { Chosen } from "./choose.ts";

/** Every conflict means that somebody else got on; more than these in a row are no accident. */
const ATTEMPTS = 5;

/** Under this name the annotation is written that asks. */
const FIELD_MANAGER = "usher-reapply";

/** What came of one workload. No changes: it is as it should be. */
export type Renewal =
  | { readonly changes: readonly string[]; readonly warnings: readonly string[] }
  | { readonly failed: string };

/** Asks usher to renew workloads, with the rights of whoever calls. */
export class Renewer {
  readonly #client: Client;
  readonly #resources: ResourceResolver;
  readonly #module: Module;
  readonly #annotation: string;

  constructor(client: Client, resources: ResourceResolver, module: Module) {
    this.#client = client;
    this.#resources = resources;
    this.#module = module;
    this.#annotation = module.driftScan?.annotation ?? "";
  }

  /** What would change: the API server and usher answer as they will, and nothing is stored. */
  async tryOut(chosen: Chosen): Promise<Renewal> {
    return this.#ask(chosen, true).catch((error: unknown) => {
      // Nothing has been done yet, so an API server that does not answer ends it all.
      if (error instanceof ConnectionError) throw error;
      return { failed: errorMessage(describe(chosen), error) };
    });
  }

  /** Renews it, where it is still as it was when it was tried out or has changed in something else. */
  async renew(chosen: Chosen): Promise<Renewal> {
    return this.#ask(chosen, false).catch((error: unknown) => ({
      failed: errorMessage(describe(chosen), error),
    }));
  }

  async #ask(chosen: Chosen, dry: boolean): Promise<Renewal> {
    const path = await this.#resources.pathOf(resourceName(chosen.workload), chosen.namespace, chosen.name);
    const what = describe(chosen);
    for (let attempt = 1; ; attempt++) {
      const read = await this.#client.request("GET", path);
      if (isNotFound(read, chosen.name)) return { failed: "there is no such workload" };
      if (read.status !== 200 || !isObject(read.body)) return { failed: denied("read", what, read) };
      const answer = await this.#patch(
        path,
        read.body,
        requestReapply(read.body, this.#annotation, "cli"),
        dry,
      );
      if (answer.status === 409 && attempt < ATTEMPTS) continue;
      if (answer.status >= 300 || !isObject(answer.body)) return { failed: denied("change", what, answer) };
      if (reapplyRequested(answer.body, this.#annotation)) {
        if (!dry) await this.#withdraw(path, answer.body);
        return {
          failed:
            "usher did not answer, so nothing was renewed: see whether it runs and its webhook is registered, and whether it stays out of this namespace",
        };
      }
      return { ...this.#compared(chosen, read.body, answer.body), warnings: warningsOf(answer) };
    }
  }

  #compared(
    { workload }: Chosen,
    before: JsonObject,
    after: JsonObject,
  ): { readonly changes: readonly string[] } {
    const spec = specPath(workload);
    const changes = changesBetween(at(before, ...spec), at(after, ...spec));
    if (changes.length > 0) return { changes };
    const noted = injectionsIn(this.#module.name, before, after, spec).some(
      ({ state }) => state === "orphaned",
    );
    return { changes: noted ? ["! only its note on what usher changed"] : [] };
  }

  /** What nobody heard must not wait for the next one who changes the workload, and surprise him with a rollout. */
  async #withdraw(path: string, object: JsonObject): Promise<void> {
    const key = this.#annotation.replaceAll("~", "~0").replaceAll("/", "~1");
    await this.#patch(path, object, [{ op: "remove", path: `/metadata/annotations/${key}` }], false);
  }

  #patch(path: string, object: JsonObject, operations: readonly Json[], dry: boolean): Promise<ApiResponse> {
    const version = stringAt(object, "metadata", "resourceVersion") ?? "";
    const guard = { op: "add", path: "/metadata/resourceVersion", value: version };
    const query = `fieldManager=${FIELD_MANAGER}${dry ? "&dryRun=All" : ""}`;
    return this.#client.request("PATCH", `${path}?${query}`, {
      body: [...operations, guard],
      contentType: "application/json-patch+json",
    });
  }
}

function describe({ workload, namespace, name }: Chosen): string {
  return `${workload.kind} ${namespace}/${name}`;
}

/** What the API server and webhooks warned of: `299 - "text"`, several of them on one line. */
function warningsOf({ headers }: ApiResponse): string[] {
  const found = (headers["warning"] ?? "").matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g);
  return [...found].map(([, text = ""]) => text.replace(/\\(.)/g, "$1"));
}

function denied(verb: string, what: string, answer: ApiResponse): string {
  if (answer.status !== 403) return responseMessage(`${verb} ${what}`, answer);
  const said = stringAt(answer.body, "message") ?? "forbidden";
  // A webhook's refusal is no matter of rights.
  return said.startsWith("admission webhook") ? said : `you may not ${verb} it: ${said}`;
}
