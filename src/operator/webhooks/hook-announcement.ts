import { errorMessage, responseMessage } from "../../cluster/client/api-response.ts";
import type { Client } from "../../cluster/client/client.ts";
import { pathSegment } from "../../cluster/client/path-segment.ts";
import { FIELD_MANAGER } from "../../cluster/controller/planned-writes.ts";
import { collectionOf } from "../../cluster/tallies/tally-objects.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { askedName, type Hook } from "../../core/module/hook.ts";

/** The label of each ConfigMap with the hooks that a replica answers, and the key of its data. */
export const HOOKS_LABEL = "usher.dev/hooks";
export const HOOKS_ENTRY = "hooks";

export function announcementName(replica: string): string {
  return `usher-hooks-${replica}`;
}

/** How a replica is asked: `validate/placement-enforcement`. */
export function hookKey(hook: Hook): string {
  return `${hook.phase}/${askedName(hook)}`;
}

export interface HookAnnouncementOptions {
  readonly client: Client;
  readonly namespace: string;
  /** The name of this replica's pod. */
  readonly replica: string;
  /** The pod, as an ownerReference: the announcement goes with it. */
  readonly owner?: JsonObject | undefined;
  /** What this replica answers now. */
  readonly hooks: () => readonly Hook[];
  readonly log: Log;
}

/**
 * Says which hooks this replica answers, in a ConfigMap, so that the leader registers no other: replicas of two versions or two
 * configurations stand behind one Service while they are rolled.
 */
export class HookAnnouncement {
  readonly #options: HookAnnouncementOptions;
  #published = "";
  #publishing: Promise<void> = Promise.resolve();

  constructor(options: HookAnnouncementOptions) {
    this.#options = options;
  }

  /** Writes it where it has changed. Never rejects: without it, hooks that are new are not registered, and that is all. */
  publish(): Promise<void> {
    this.#publishing = this.#publishing.then(() => this.#publish());
    return this.#publishing;
  }

  async stop(): Promise<void> {
    await this.#publishing;
    if (this.#published !== "")
      await this.#options.client.request("DELETE", this.#path).catch(() => undefined);
  }

  get #path(): string {
    const { namespace, replica } = this.#options;
    return `${collectionOf(namespace)}/${pathSegment("name", announcementName(replica))}`;
  }

  async #publish(): Promise<void> {
    const { client, namespace, replica, owner, hooks, log } = this.#options;
    const text = JSON.stringify([...new Set(hooks().map(hookKey))].sort());
    if (text === this.#published) return;
    try {
      const answer = await client.request("PATCH", `${this.#path}?fieldManager=${FIELD_MANAGER}&force=true`, {
        contentType: "application/apply-patch+yaml",
        body: {
          apiVersion: "v1",
          kind: "ConfigMap",
          metadata: {
            name: announcementName(replica),
            namespace,
            labels: { [HOOKS_LABEL]: "true" },
            ...(owner === undefined ? {} : { ownerReferences: [owner] }),
          },
          data: { [HOOKS_ENTRY]: text },
        },
      });
      if (answer.status >= 300) throw new Error(responseMessage("PATCH", answer));
      this.#published = text;
    } catch (error) {
      log.warn({ error: errorMessage("hooks", error) }, "failed to announce the hooks of this replica");
    }
  }
}
