import type { Client } from "../../cluster/client/client.ts";
import { pause } from "../../cluster/client/retry.ts";
import { at, type Json, listAt, stringAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { askedName, type Hook } from "../../core/module/hook.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";

/** The leader withdraws within one resync what a starting replica does not announce. Without a leader nobody does, and waiting ends. */
const LONGEST_WAIT_MS = 20_000;
const POLL_MS = 500;

const CONFIGURATIONS = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"].map(
  (resource) => `/apis/admissionregistration.k8s.io/v1/${resource}/${OWN_NAMES.webhooks}`,
);

/** Names in the paths of a webhook configuration: `/TOKEN/validate/HOOK/HOOK`. */
function registeredNames(configuration: Json | undefined): string[] {
  return listAt(configuration, "webhooks").flatMap((entry) => {
    const segments = (stringAt(entry, "clientConfig", "service", "path") ?? "").split("/");
    const phase = segments.findIndex((one) => one === "mutate" || one === "validate");
    return phase < 0
      ? []
      : segments.slice(phase).flatMap((name, i, all) => (i === 0 ? [] : [`${all[0]}/${name}`]));
  });
}

/** Hooks that are registered and that these are not. */
export function unansweredHooks(
  configurations: readonly (Json | undefined)[],
  hooks: readonly Hook[],
): string[] {
  const known = new Set(
    hooks.flatMap((hook) => [hook.name, askedName(hook)].map((name) => `${hook.phase}/${name}`)),
  );
  return [...new Set(configurations.flatMap(registeredNames))].filter((name) => !known.has(name)).sort();
}

/** Waits until no hook is registered that this replica can't answer: before that it must not serve. Never rejects. */
export async function untilAllAnswered(
  client: Client,
  hooks: () => readonly Hook[],
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const until = performance.now() + LONGEST_WAIT_MS;
  for (let first = true; !signal.aborted; first = false) {
    const answers = await Promise.all(
      CONFIGURATIONS.map((path) => client.request("GET", path, { signal }).catch(() => undefined)),
    );
    const unanswered = unansweredHooks(
      answers.map((answer) => (answer?.status === 200 ? at(answer.body) : undefined)),
      hooks(),
    );
    if (unanswered.length === 0) return;
    if (first)
      log.info({ hooks: unanswered }, "waiting until hooks are withdrawn that this replica can't answer");
    if (performance.now() > until) {
      log.warn({ hooks: unanswered }, "serving though hooks are registered that this replica can't answer");
      return;
    }
    await pause(POLL_MS, signal);
  }
}
