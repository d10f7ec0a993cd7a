import { errorMessage, responseMessage } from "../../cluster/client/api-response.ts";
import type { Client } from "../../cluster/client/client.ts";
import { FIELD_MANAGER } from "../../cluster/client/client.ts";
import { pathSegment } from "../../cluster/client/discovery.ts";
import { poll } from "../../cluster/client/retry.ts";
import { collectionOf } from "../../cluster/policy-statistics/tally-objects.ts";
import { at, type Json, type JsonObject, listAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { askedName, type Hook } from "../../core/module/hook.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { REPLACE_EVERY_MS } from "../certificates/path-tokens.ts";
import { calledPath } from "./deviation.ts";

/** The label of each ConfigMap with the hooks that a replica answers, and the key of its data. */
export const HOOKS_LABEL = "usher.dev/hooks";
export const HOOKS_ENTRY = "hooks";

/**
 * The key of the time of the last failed call to this replica. The leader compares it with the value it saw before, not
 * with a clock.
 */
export const FAILED_ENTRY = "lastFailedCall";

export function announcementName(replica: string): string {
  return `usher-hooks-${replica}`;
}

/** How the API server calls a hook: `validate/placement-enforcement`. */
export function hookKey(hook: Hook): string {
  return `${hook.phase}/${askedName(hook)}`;
}

/** After a failed write: each attempt that fails is logged. */
const RETRY_MS = 10_000;

interface HookAnnouncementOptions {
  readonly client: Client;
  readonly namespace: string;
  /** The name of this replica's pod. */
  readonly replica: string;
  /** The pod, as an ownerReference: the announcement is deleted with it. */
  readonly owner?: JsonObject | undefined;
  /** The hooks that this replica answers now. */
  readonly hooks: () => readonly Hook[];
  readonly log: Log;
}

/**
 * Announces in a ConfigMap which hooks this replica answers, so that the leader registers no other: during a rollout,
 * replicas of two versions or two configurations are behind one Service.
 */
export class HookAnnouncement {
  readonly #options: HookAnnouncementOptions;
  #published = "";
  #publishing: Promise<void> = Promise.resolve();
  #failed: string | undefined;
  /** When a failed call was last announced, of `performance.now()`. */
  #failedAt = Number.NEGATIVE_INFINITY;
  #announcing: NodeJS.Timeout | undefined;
  #retrying: NodeJS.Timeout | undefined;

  constructor(options: HookAnnouncementOptions) {
    this.#options = options;
  }

  /** Writes the announcement if it has changed. Never rejects: without it, only new hooks are not registered. */
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
    clearTimeout(this.#retrying);
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
      clearTimeout(this.#retrying);
      this.#retrying = setTimeout(() => void this.publish(), RETRY_MS).unref();
    }
  }
}

/** The leader withdraws hooks that a starting replica does not announce within one resync of 3 s. Without a leader the wait must end. */
const LONGEST_WAIT_MS = 20_000;

const CONFIGURATIONS = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"].map(
  (resource) => `/apis/admissionregistration.k8s.io/v1/${resource}/${OWN_NAMES.webhooks}`,
);

/** The hooks that a webhook configuration calls. */
function registeredNames(configuration: Json | undefined): string[] {
  return listAt(configuration, "webhooks").flatMap((entry) => {
    const { head, names } = calledPath(entry);
    return names.map((name) => `${head.at(-1)}/${name}`);
  });
}

/** Registered hooks that a replica with these hooks can't answer. */
export function unsupportedHooks(
  configurations: readonly (Json | undefined)[],
  hooks: readonly Hook[],
): string[] {
  const known = new Set(
    hooks.flatMap((hook) => [hook.name, askedName(hook)].map((name) => `${hook.phase}/${name}`)),
  );
  return [...new Set(configurations.flatMap(registeredNames))].filter((name) => !known.has(name)).sort();
}

/** Waits until all registered hooks are among those of this replica: before that it must not serve. Never rejects. */
export async function untilSupported(
  client: Client,
  hooks: () => readonly Hook[],
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  let unsupported: readonly string[] = [];
  let logged = false;
  const isDone = await poll(
    LONGEST_WAIT_MS,
    async () => {
      const answers = await Promise.all(
        CONFIGURATIONS.map((path) => client.request("GET", path, { signal }).catch(() => undefined)),
      );
      const bodies = answers.map((answer) => (answer?.status === 200 ? at(answer.body) : undefined));
      unsupported = unsupportedHooks(bodies, hooks());
      if (unsupported.length > 0 && !logged)
        log.info({ hooks: unsupported }, "waiting until hooks are withdrawn that this replica can't answer");
      logged = true;
      return unsupported.length === 0;
    },
    signal,
  );
  if (!isDone && !signal.aborted)
    log.warn({ hooks: unsupported }, "serving though hooks are registered that this replica can't answer");
}
