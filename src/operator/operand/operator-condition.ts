import type { Client } from "../../cluster/client/client.ts";
import { at, equal, isObject, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { conditionOf } from "../../core/policy/condition.ts";
import { DeduplicatedLog } from "../controller/deduplicated-log.ts";
import { Objects } from "../install/apply.ts";

/** OLM names the object of an operator that it installed in this variable, and lets the operator write it. */
export const OPERATOR_CONDITION_VARIABLE = "OPERATOR_CONDITION_NAME";

export interface OperatorConditionOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly name: string;
  readonly fieldManager: string;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/**
 * Says to OLM whether the operator may be replaced: not while pods of the operand are. One roll-out that is stuck does not count, because
 * another version may be what ends it.
 */
export class OperatorCondition {
  readonly #objects: Objects;
  readonly #reference: JsonObject;
  readonly #now: () => number;
  readonly #deduplicated: DeduplicatedLog;

  constructor({ client, namespace, name, fieldManager, log, now = Date.now }: OperatorConditionOptions) {
    this.#objects = new Objects(client, fieldManager);
    this.#reference = {
      apiVersion: "operators.coreos.com/v2",
      kind: "OperatorCondition",
      metadata: { name, namespace },
    };
    this.#now = now;
    this.#deduplicated = new DeduplicatedLog(log, () => performance.now());
  }

  /** Follows the status of the custom resource; `undefined` where there is none. Never rejects: the operand goes first. */
  readonly report = async (status: JsonObject | undefined): Promise<void> => {
    try {
      const seen = await this.#objects.read(this.#reference);
      if (seen === undefined) throw new Error("OLM has not made it");
      const spec = isObject(seen["spec"]) ? seen["spec"] : {};
      const own = upgradeable(status, spec, this.#now());
      const others = listAt(spec, "conditions").filter((one) => at(one, "type") !== "Upgradeable");
      const conditions: Json = [...others, own];
      if (equal(conditions, at(spec, "conditions"))) return;
      const object = { ...this.#reference, spec: { ...spec, conditions } };
      await this.#objects.replace(object, "spec", seen);
      this.#deduplicated.succeeded("condition");
    } catch (error) {
      this.#deduplicated.failed("condition", error, "failed to write the OperatorCondition, retrying");
    }
  };
}

function upgradeable(status: JsonObject | undefined, before: JsonObject, now: number): JsonObject {
  const holds = (type: string) =>
    listAt(status, "conditions").find((one) => at(one, "type") === type && at(one, "status") === "True");
  const progressing = holds("Progressing");
  const waits = progressing !== undefined && holds("Degraded") === undefined;
  const observation = waits
    ? {
        reason: stringAt(progressing, "reason") ?? "Progressing",
        message: `the operand changes: ${stringAt(progressing, "message")}`,
      }
    : { reason: "AsDesired", message: "no pod of the operand is being replaced" };
  return conditionOf({ type: "Upgradeable", holds: !waits, ...observation }, undefined, before, now);
}
