import { errorMessage, responseMessage } from "../../cluster/client/api-response.ts";
import type { Client } from "../../cluster/client/client.ts";
import { pathSegment } from "../../cluster/client/path-segment.ts";
import { FIELD_MANAGER } from "../../cluster/controller/planned-writes.ts";
import { collectionOf } from "../../cluster/tallies/tally-objects.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { askedName, type Hook } from "../../core/module/hook.ts";
import { REPLACE_EVERY_MS } from "../certificates/path-tokens.ts";

/** The label of each ConfigMap with the hooks that a replica answers, and the key of its data. */
export const HOOKS_LABEL = "usher.dev/hooks";
export const HOOKS_ENTRY = "hooks";

/** The key of the time at which a call to this replica last failed. The leader compares it with what it saw before, and with no clock. */
export const FAILED_ENTRY = "lastFailedCall";

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
  #failed: string | undefined;
  /** When a failed call was last announced, of `performance.now()`. */
  #failedAt = Number.NEGATIVE_INFINITY;
  #announcing: NodeJS.Timeout | undefined;

  constructor(options: HookAnnouncementOptions) {
    this.#options = options;
  }

  /** Writes it where it has changed. Never rejects: without it, hooks that are new are not registered, and that is all. */
  publish(): Promise<void> {
    this.#publishing = this.#publishing.then(() => this.#publish());
    return this.#publishing;
  }

  /** The API server got no answer, and may have shown a client the path. Announced as often as paths are replaced. */
  readonly callFailed = (): void => {
    if (this.#announcing !== undefined) return;
    const waitMs = Math.max(0, this.#failedAt + REPLACE_EVERY_MS - performance.now());
    this.#announcing = setTimeout(() => {
      this.#announcing = undefined;
      this.#failedAt = performance.now();
      this.#failed = new Date().toISOString();
      void this.publish();
    }, waitMs).unref();
  };

  async stop(): Promise<void> {
    clearTimeout(this.#announcing);
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
    const data = {
      [HOOKS_ENTRY]: JSON.stringify([...new Set(hooks().map(hookKey))].sort()),
      ...(this.#failed === undefined ? {} : { [FAILED_ENTRY]: this.#failed }),
    };
    const text = JSON.stringify(data);
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
          data,
        },
      });
      if (answer.status >= 300) throw new Error(responseMessage("PATCH", answer));
      this.#published = text;
    } catch (error) {
      log.warn({ error: errorMessage("hooks", error) }, "failed to announce the hooks of this replica");
    }
  }
}
