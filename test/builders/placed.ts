import type { AdmissionRequest } from "../../src/core/decision/request.ts";
import { evaluate } from "../../src/core/evaluate/evaluate.ts";
import type { Evaluation, EvaluationRequest } from "../../src/core/evaluate/evaluate-hooks.ts";
import { type AdmissionResponse, responseOf } from "../../src/core/evaluate/response.ts";
import type { Json, JsonObject } from "../../src/core/json.ts";
import { at } from "../../src/core/json.ts";
import { placement } from "../../src/modules/placement/index.ts";
import { assemblyOf, atOnce, callOf } from "./evaluation.ts";
import { again } from "./json.ts";
import { outside, type RecordedHost } from "./outside.ts";
import { came, namespace } from "./policy.ts";
import { requestFor } from "./request.ts";

export interface Placed {
  readonly evaluation: Evaluation;
  readonly answer: AdmissionResponse;
  /** The object after admission. */
  readonly object: JsonObject;
  /** Its nodeSelector: the pod's own, else the template's. */
  readonly nodeSelector: Json | undefined;
}

function placedFrom(evaluation: Evaluation): Placed {
  const { object } = evaluation.draft;
  const spec =
    at(object, "spec", "jobTemplate", "spec", "template", "spec") ??
    at(object, "spec", "template", "spec") ??
    at(object, "template", "spec") ??
    at(object, "spec");
  return { evaluation, answer: responseOf(evaluation), object, nodeSelector: at(spec, "nodeSelector") };
}

/** The namespace of the objects that the other builders make. */
export const SHOP = namespace("shop", { team: "red" });

/** The result of placement for an object (or a request) with these policies and namespaces. Must not wait for facts. */
export function placed(
  known: readonly JsonObject[],
  asked: JsonObject | AdmissionRequest,
  change: Partial<EvaluationRequest> = {},
): Placed {
  const call = callOf(assemblyOf([placement], known.map(came)), requestOf(asked), change);
  return placedFrom(atOnce(evaluate(call, outside())));
}

/** The same, when facts may be fetched. */
export async function placedWith(
  world: RecordedHost,
  known: readonly JsonObject[],
  asked: JsonObject | AdmissionRequest,
): Promise<Placed> {
  const call = callOf(assemblyOf([placement], known.map(came)), requestOf(asked));
  return placedFrom(await evaluate(call, world));
}

/** Requests and objects are edited in place, so each evaluation gets its own. */
function requestOf(asked: JsonObject | AdmissionRequest): AdmissionRequest {
  if (!("userInfo" in asked)) return requestFor(again(asked));
  const { object, oldObject, ...rest } = asked as AdmissionRequest;
  return {
    ...rest,
    object: object === undefined ? undefined : again(object),
    oldObject: oldObject === undefined ? undefined : again(oldObject),
  };
}
