import type { Client } from "../../cluster/client/client.ts";
import { listAll } from "../../cluster/client/list-pages.ts";
import { collectionOf } from "../../cluster/tallies/tally-objects.ts";
import { isObject, type Json, stringAt } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import type { Hook } from "../../core/module/hook.ts";
import type { RepeatedLog } from "../controller/repeated-log.ts";
import { announcementName, FAILED_ENTRY, HOOKS_ENTRY, HOOKS_LABEL, hookKey } from "./hook-announcement.ts";
import { callsMayHaveFailed, type ServiceEndpoints, serviceEndpoints } from "./service-endpoints.ts";

export interface AnsweredHooksOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly service: string;
  /** This replica, which answers whatever it declares. */
  readonly replica: string | undefined;
  readonly repeated: RepeatedLog;
}

/** `silent`: it announces nothing, as replicas of versions before announcements. */
type Announced = ReadonlySet<string> | "silent";

/** Which hooks all replicas answer that the Service leads to, and whether calls to them fail. */
export class AnsweredHooks {
  readonly #options: AnsweredHooksOptions;
  #serving: ReadonlyMap<string, Announced> = new Map();
  #endpoints: ServiceEndpoints | undefined;
  /** When calls last failed, as replicas announce it. */
  #failures: ReadonlySet<string> = new Set();

  constructor(options: AnsweredHooksOptions) {
    this.#options = options;
  }

  /** Whether calls may have failed since the last time. Where it can't be read, the last state counts. */
  async refresh(): Promise<boolean> {
    const { repeated } = this.#options;
    try {
      const failed = await this.#read();
      repeated.succeeded("replicas");
      return failed;
    } catch (error) {
      repeated.failed("replicas", error, "failed to read which hooks replicas answer, retrying");
      return false;
    }
  }

  async #read(): Promise<boolean> {
    const { client, namespace, service, replica } = this.#options;
    // First: a replica announces its hooks before it serves, so one that is missing here and serves then is silent.
    const found = await serviceEndpoints(client, namespace, service);
    const items = await listAll(client, collectionOf(namespace), { labelSelector: `${HOOKS_LABEL}=true` });
    const announced = new Map(items.map((item) => [nameOf(item), hooksIn(item)]));
    const serving = new Map<string, Announced>();
    for (const { pod, serves } of found.endpoints) {
      if (pod === undefined || pod === replica) continue;
      const hooks = announced.get(announcementName(pod));
      // One that starts counts already where it said what it knows. One that starts silently may be about to say it.
      if (hooks !== undefined || serves) serving.set(pod, hooks ?? "silent");
    }
    this.#serving = serving;
    const failures = new Set(items.flatMap((item) => stringAt(item, "data", FAILED_ENTRY) ?? []));
    const failed = callsMayHaveFailed(this.#endpoints, found) || !failures.isSubsetOf(this.#failures);
    this.#endpoints = found;
    this.#failures = failures;
    return failed;
  }

  /** Whether all of them answer it; another one would fail by the hook's failure mode. */
  answers(hook: Hook): boolean {
    for (const [pod, hooks] of this.#serving) {
      if (hooks === "silent" ? hook.announced !== true : hooks.has(hookKey(hook))) continue;
      const facts = { hook: hook.name, pod };
      const message = "hook is not registered while a replica serves that does not know it";
      this.#options.repeated.once(`${hook.name} ${pod}`, facts, message);
      return false;
    }
    return true;
  }
}

/** What can't be read announces nothing that would be known. */
function hooksIn(item: Json): ReadonlySet<string> | undefined {
  if (!isObject(item)) return undefined;
  try {
    const list = JSON.parse(stringAt(item, "data", HOOKS_ENTRY) ?? "") as Json;
    return Array.isArray(list) ? new Set(list.filter((one) => typeof one === "string")) : undefined;
  } catch {
    return undefined;
  }
}
