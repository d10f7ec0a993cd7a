import type { Client } from "../../cluster/client/client.ts";
import { listAll } from "../../cluster/client/list-pages.ts";
import { collectionOf } from "../../cluster/policy-statistics/tally-objects.ts";
import { isObject, type Json, stringAt } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import type { Hook } from "../../core/module/hook.ts";
import type { DeduplicatedLog } from "../deduplicated-log.ts";
import { announcementName, FAILED_ENTRY, HOOKS_ENTRY, HOOKS_LABEL, hookKey } from "./hook-announcement.ts";
import { callsMayHaveFailed, type ServiceEndpoints, serviceEndpoints } from "./service-endpoints.ts";

interface SupportedHooksOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly service: string;
  /** This replica, which answers all hooks that it declares. */
  readonly replica: string | undefined;
  readonly deduplicated: DeduplicatedLog;
}

/** `silent`: the replica announces nothing, as versions before announcements. */
type Announced = ReadonlySet<string> | "silent";

/**
 * The hooks that all replicas behind the Service answer, and whether calls to them fail. See
 * docs/decisions/0021-hook-announcements.md.
 */
export class SupportedHooks {
  readonly #options: SupportedHooksOptions;
  #serving: ReadonlyMap<string, Announced> = new Map();
  #endpoints: ServiceEndpoints | undefined;
  #isReady = false;
  /** When calls last failed, as announced by replicas. */
  #failures: ReadonlySet<string> = new Set();

  constructor(options: SupportedHooksOptions) {
    this.#options = options;
  }

  /**
   * Whether calls may have failed since the last call of this method. If endpoints or announcements can't be read, the
   * last state counts.
   */
  async refresh(): Promise<boolean> {
    const { deduplicated } = this.#options;
    try {
      const failed = await this.#read();
      deduplicated.succeeded("replicas");
      return failed;
    } catch (error) {
      deduplicated.failed("replicas", error, "failed to read which hooks replicas answer, retrying");
      return false;
    }
  }

  async #read(): Promise<boolean> {
    const { client, namespace, service, replica } = this.#options;
    // Endpoints first: a replica announces its hooks before it serves, so one that serves and has no announcement is
    // silent.
    this.#isReady = false;
    const found = await serviceEndpoints(client, namespace, service);
    this.#isReady = found.endpoints.some(({ ready }) => ready);
    const items = await listAll(client, collectionOf(namespace), { labelSelector: `${HOOKS_LABEL}=true` });
    const announced = new Map(items.map((item) => [nameOf(item), hooksIn(item)]));
    const serving = new Map<string, Announced>();
    for (const { pod, serves } of found.endpoints) {
      if (pod === undefined || pod === replica) continue;
      const hooks = announced.get(announcementName(pod));
      // A starting replica counts as soon as it has announced its hooks. Without an announcement it may be about to
      // write one.
      if (hooks !== undefined || serves) serving.set(pod, hooks ?? "silent");
    }
    this.#serving = serving;
    const failures = new Set(items.flatMap((item) => stringAt(item, "data", FAILED_ENTRY) ?? []));
    const failed = callsMayHaveFailed(this.#endpoints, found) || !failures.isSubsetOf(this.#failures);
    this.#endpoints = found;
    this.#failures = failures;
    return failed;
  }

  /** Whether the Service has a ready endpoint, by the last look; false if it failed. Nothing is registered or closed before that. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Whether all of them answer it. A replica that does not know the hook responds 404, and the hook's failure mode decides. */
  has(hook: Hook): boolean {
    for (const [pod, hooks] of this.#serving) {
      if (hooks === "silent" ? hook.announced !== true : hooks.has(hookKey(hook))) continue;
      const facts = { hook: hook.name, pod };
      const message = "hook is not registered while a replica serves that does not know it";
      this.#options.deduplicated.once(`${hook.name} ${pod}`, facts, message);
      return false;
    }
    return true;
  }
}

/** An unreadable announcement counts as absent. */
function hooksIn(item: Json): ReadonlySet<string> | undefined {
  if (!isObject(item)) return undefined;
  try {
    const list = JSON.parse(stringAt(item, "data", HOOKS_ENTRY) ?? "") as Json;
    return Array.isArray(list) ? new Set(list.filter((one) => typeof one === "string")) : undefined;
  } catch {
    return undefined;
  }
}
