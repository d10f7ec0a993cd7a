import type { PolicyRef } from "../../../core/evaluate/finding.ts";
import type { JsonObject } from "../../../core/json.ts";
import type { Prepared } from "../../../core/policy/kind.ts";

/** A PodSecurityException, ready to be compared with pods. */
export interface Exception {
  readonly ref: PolicyRef;
  readonly checks: ReadonlySet<string>;
  readonly namespaces: ReadonlySet<string>;
  /** Milliseconds since 1970. */
  readonly expires: number;
}

/** All exceptions, by namespace. */
export class Exceptions {
  readonly #byNamespace: ReadonlyMap<string, readonly Exception[]>;

  constructor(all: readonly Exception[]) {
    const byNamespace = new Map<string, Exception[]>();
    for (const one of all) {
      for (const namespace of one.namespaces) {
        const list = byNamespace.get(namespace);
        if (list === undefined) byNamespace.set(namespace, [one]);
        else list.push(one);
      }
    }
    this.#byNamespace = byNamespace;
  }

  in(namespace: string): readonly Exception[] {
    return this.#byNamespace.get(namespace) ?? [];
  }
}

export function prepareException(_object: JsonObject, _ref: PolicyRef): Prepared<Exception> {
  return { policy: undefined, problems: [] };
}
