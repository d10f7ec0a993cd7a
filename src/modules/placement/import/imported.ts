import type { JsonObject } from "../../../core/json.ts";
import { NAMESPACE_NAME } from "../../../core/kubernetes/object.ts";
import type { CommandReport } from "../../../core/module/command.ts";
import { checkObject } from "../../../core/policy/check.ts";
import { describeProblem } from "../../../core/policy/problem.ts";
import { Store } from "../../../core/view/store.ts";
import { clusterPodSchedulingPolicy, GROUP } from "../kinds.ts";

/** Collects what an import makes of foreign policies. Nothing is dropped: each part is converted, or named with the reason. */
export class Imported {
  readonly #policies: JsonObject[] = [];
  /** Not converted, with why. */
  readonly #left: string[] = [];
  /** Converted, with how the answers differ. */
  readonly #differences: string[] = [];

  left(what: string, why: string): void {
    this.#left.push(`${what}: not converted: ${why}`);
  }

  differs(what: string, how: string): void {
    this.#differences.push(`${what}: differs: ${how}`);
  }

  /** Adds a policy; one that usher itself would refuse is named instead. */
  policy(what: string, name: string, spec: JsonObject): void {
    const object = {
      apiVersion: `${GROUP}/v1alpha1`,
      kind: clusterPodSchedulingPolicy.kind,
      metadata: { name: this.#unused(name) },
      spec,
    };
    const wrong = checkObject(clusterPodSchedulingPolicy, object, new Store()).filter(
      ({ severity }) => severity === "error",
    );
    if (wrong.length === 0) this.#policies.push(object);
    else this.left(what, `usher refuses the policy: ${wrong.map(describeProblem).join("; ")}`);
  }

  report(from: string): CommandReport {
    if (this.#policies.length === 0 && this.#left.length === 0) this.#left.push(`nothing to import: ${from}`);
    return {
      data: { items: this.#policies },
      manifests: this.#policies,
      notes: this.#differences,
      errors: this.#left,
      exit: this.#left.length > 0 ? "found" : "fine",
    };
  }

  #unused(name: string): string {
    const base =
      name
        .toLowerCase()
        .replaceAll(/[^a-z0-9-]+/g, "-")
        .replaceAll(/^-+|-+$/g, "") || "imported";
    const used = new Set(this.#policies.map(({ metadata }) => (metadata as JsonObject)["name"]));
    let unused = base;
    for (let i = 2; used.has(unused); i++) unused = `${base}-${i}`;
    return unused;
  }
}

/** A selector of namespaces by their names. */
export function byNames(operator: "In" | "NotIn", values: readonly string[]): JsonObject {
  return values.length === 0
    ? {}
    : { matchExpressions: [{ key: NAMESPACE_NAME, operator, values: [...values] }] };
}
