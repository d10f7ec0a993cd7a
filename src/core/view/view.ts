import type { JsonObject } from "../json.ts";
import type { ServerVersion } from "../kubernetes/versions.ts";

/** One object was created, changed or deleted. */
export interface Change {
  /** `pods`, `deployments.apps` */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  /** `undefined`: it was deleted. */
  readonly object: JsonObject | undefined;
  /** The previous object. Only a view knows it, for objects that it has stored. */
  readonly before?: JsonObject;
}

/**
 * The known state of the cluster. Data to read, not a client: it never changes during an evaluation, and reading it
 * never waits.
 */
export interface View {
  get(resource: string, namespace: string, name: string): JsonObject | undefined;
  list(resource: string, namespace?: string): Iterable<JsonObject>;
  /** The objects that a declared index files under a value. */
  lookup(resource: string, index: string, value: string): Iterable<JsonObject>;
  count(resource: string): number;
  /** False if the source does not have this resource at all, so that "none" does not mean "none exist". */
  served(resource: string): boolean;
  /** The API server's, or the configured one; `undefined` offline without configuration, and until it could be read. */
  readonly serverVersion: ServerVersion | undefined;
  /** The same view with these changes applied. */
  with(changes: readonly Change[]): View;
}

/** A way to find objects of a resource other than by name. Declared by a module, updated as objects change. */
export interface Index {
  readonly name: string;
  readonly values: (object: JsonObject) => readonly string[];
}

export function objectKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}
