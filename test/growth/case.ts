import type { AdmissionRequest } from "../../src/core/decision/request.ts";
import type { JsonObject } from "../../src/core/json.ts";
import type { Phase } from "../../src/core/module/hook.ts";
import { namespace } from "../builders/policy.ts";
import { requestFor } from "../builders/request.ts";
import type { World } from "./worlds.ts";

/** One review, with the policies that exist at that time. */
export interface Review {
  readonly policies: readonly JsonObject[];
  readonly request: AdmissionRequest;
  readonly phase: Phase;
  /** @default placement alone, with only the policies in the cluster */
  readonly world?: World;
  /** The stored pod, if the review needs one. */
  readonly pod?: JsonObject;
}

/** A field or a list that a tenant can grow. */
export interface GrowthCase {
  readonly name: string;
  /** At eight times this size the request or its annotations exceed the API server's limit. */
  readonly n: number;
  readonly review: (n: number) => Review;
}

/** The sizes at which each case runs. */
export const MULTIPLES = [1, 2, 4, 8] as const;

/** The namespace of the tenant. */
export const TENANT = namespace("shop", { team: "red" });

export function many<Item>(count: number, make: (i: number) => Item): Item[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

/** A map with this many keys. */
export function pairs(
  count: number,
  key: (i: number) => string = (i) => `k${i}`,
  value: (i: number) => string = () => "v",
): JsonObject {
  return Object.fromEntries(many(count, (i) => [key(i), value(i)]));
}

export function creation(
  policies: readonly JsonObject[],
  object: JsonObject,
  phase: Phase = "mutate",
): Review {
  return { policies, request: requestFor(object), phase };
}

export function update(
  policies: readonly JsonObject[],
  oldObject: JsonObject,
  object: JsonObject,
  phase: Phase = "mutate",
): Review {
  return { policies, request: requestFor(object, { operation: "UPDATE", oldObject }), phase };
}
