import { type JsonObject, stringAt } from "../../core/json.ts";
import type { DeduplicatedLog } from "../deduplicated-log.ts";
import { describeObject } from "../install/apply.ts";

/** The number of differing fields, by object: `MutatingWebhookConfiguration usher`. */
export type DriftFigures = ReadonlyMap<string, number>;

/** Objects that usher needs and does not write: webhooks with `manageWebhooks: false`, its configuration, and those that are refused. */
export class Drift {
  readonly #deduplicated: DeduplicatedLog;
  readonly #figures = new Map<string, number>();
  readonly #parts = new Map<string, ReadonlySet<string>>();

  constructor(deduplicated: DeduplicatedLog) {
    this.#deduplicated = deduplicated;
  }

  get figures(): DriftFigures {
    return this.#figures;
  }

  clear(): void {
    this.#figures.clear();
    this.#parts.clear();
  }

  /** All objects of one part of the installation: objects reported before and now absent no longer count. */
  reportAll(
    part: string,
    found: readonly { readonly object: JsonObject; readonly deviations: readonly string[] }[],
    next?: string,
  ): void {
    const now = new Set(found.map(({ object }) => describeObject(object)));
    for (const what of this.#parts.get(part) ?? []) if (!now.has(what)) this.#figures.delete(what);
    this.#parts.set(part, now);
    for (const { object, deviations } of found) this.#report(object, deviations, next);
  }

  /** Zero if the object is as it should be. */
  #report(object: JsonObject, deviations: readonly string[], next: string | undefined): void {
    const what = describeObject(object);
    this.#figures.set(what, deviations.length);
    if (deviations.length === 0) {
      this.#deduplicated.succeeded(what);
      return;
    }
    this.#deduplicated.failed(
      what,
      deviations.join(", "),
      next ?? `drift: ${reportOf(stringAt(object, "kind") ?? "")}`,
    );
  }
}

function reportOf(kind: string): string {
  if (kind === "ConfigMap")
    return "new replicas wait for the configuration; apply it again, by usher install or the tool that deploys usher";
  const next = kind.endsWith("WebhookConfiguration") ? "; usher manifests prints what to apply" : "";
  return `the object is not as usher would write it, and manageWebhooks is false${next}`;
}
