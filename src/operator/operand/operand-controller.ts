import type { IssueCertificate } from "../../admission/tls/certificate.ts";
import { errorMessage, StatusError } from "../../cluster/client/api-response.ts";
import type { Client } from "../../cluster/client/client.ts";
import { pause } from "../../cluster/client/retry.ts";
import type { EventToWrite } from "../../core/decision/finding.ts";
import { at, equal, isObject, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { isBeingDeleted, nameOf } from "../../core/kubernetes/object.ts";
import type { ServerVersion } from "../../core/kubernetes/versions.ts";
import type { Log } from "../../core/log.ts";
import type { OperandReference, OperandState, OperandStep, Operator } from "../../core/module/operator.ts";
import { conditionOf } from "../../core/policy/condition.ts";
import { Repairs } from "../controller/repairs.ts";
import { DeduplicatedLog } from "../deduplicated-log.ts";
import { describeObject, Objects } from "../install/apply.ts";
import { objectDeviations, webhookDeviations, withInjectedBundle } from "../webhooks/deviation.ts";
import {
  callsMayHaveFailed,
  type ServiceEndpoints,
  serviceEndpoints,
} from "../webhooks/service-endpoints.ts";
import { OperandSecrets, registeredToken, type SecretsPlan } from "./operand-secrets.ts";

interface OperandControllerOptions {
  readonly client: Client;
  readonly operator: Operator;
  readonly image: string;
  readonly log: Log;
  readonly publish: (events: readonly EventToWrite[]) => void;
  readonly serverVersion: () => ServerVersion | undefined;
  /** Called with each status; `undefined` without the custom resource. */
  readonly report?: ((status: JsonObject | undefined) => Promise<void>) | undefined;
  /** Checked before every write. */
  readonly leading: () => boolean;
  /** Milliseconds, monotonic. */
  readonly clock?: () => number;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** @default a self-signed certificate */
  readonly issue?: IssueCertificate;
}

/**
 * A changed spec or certificate is handled within this time: a few small reads by name, while a watch would need
 * permission on all.
 */
const POLL_MS = 2_000;

/** An edit of any other object lasts for this time at most. */
const DRIFT_MS = 6_000;

/** Controllers write the status of a workload continuously during a rollout. */
const ATTEMPTS = 5;

/** Manages the operand of one custom resource: reads the current state, computes the plan, and applies it in order. */
export class OperandController {
  readonly #options: OperandControllerOptions;
  readonly #objects: Objects;
  readonly #deduplicated: DeduplicatedLog;
  readonly #repairs: Repairs;
  readonly #secrets: OperandSecrets;
  readonly #clock: () => number;
  readonly #now: () => number;
  /** The steps that were last completed, and when all objects were last read. */
  #done: { readonly steps: readonly OperandStep[]; readonly at: number } | undefined;
  /** The custom resource in its last valid state. */
  #valid: JsonObject | undefined;
  #endpoints: ServiceEndpoints | undefined;

  constructor(options: OperandControllerOptions) {
    const { client, operator, log, clock = () => performance.now(), now = Date.now, issue } = options;
    this.#options = options;
    this.#clock = clock;
    this.#now = now;
    this.#objects = new Objects(client, operator.name);
    this.#deduplicated = new DeduplicatedLog(log, clock);
    this.#repairs = new Repairs(this.#objects, this.#deduplicated);
    this.#secrets = new OperandSecrets(operator, clock, issue);
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.step();
      await pause(POLL_MS, signal);
    }
  }

  /** Reads everything once, and applies the consequences. Never rejects. */
  async step(): Promise<void> {
    try {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) if (await this.#reconcile()) break;
      this.#deduplicated.succeeded("operand");
    } catch (error) {
      this.#deduplicated.failed("operand", error, "failed to reconcile the operand, retrying");
    }
  }

  /** False if something was written, here or elsewhere at the same time, and everything must be read again. */
  async #reconcile(): Promise<boolean> {
    const { operator } = this.#options;
    const owner = await this.#objects.read(operator.resource);
    if (owner === undefined || isBeingDeleted(owner)) {
      this.#done = undefined;
      this.#valid = undefined;
      await this.#withdraw(owner);
      await this.#report(undefined);
      return true;
    }
    const { state, secrets } = await this.#observe({ ...operator.resource, ...owner });
    const { steps, status } = operator.plan(state);
    try {
      const isDue = this.#done === undefined || this.#clock() - this.#done.at >= DRIFT_MS;
      if (isDue || !equal(asJson(steps), asJson(this.#done?.steps ?? []))) {
        const at = this.#clock();
        this.#done = undefined;
        let isChanged = false;
        for (const step of steps) isChanged = (await this.#make(step, state, secrets)) || isChanged;
        await this.#reportIgnored();
        this.#done = { steps, at };
        // Consequences and status are those of the current state.
        if (isChanged) return false;
      }
      await this.#writeStatus(state.owner, status);
      await this.#report(status);
      return true;
    } catch (error) {
      if (error instanceof StatusError && error.status === 409) return false;
      const failure = errorMessage("the last attempt failed", error);
      await this.#writeStatus(state.owner, operator.plan({ ...state, failure }).status);
      throw error;
    }
  }

  async #report(status: JsonObject | undefined): Promise<void> {
    if (this.#options.leading()) await this.#options.report?.(status);
  }

  /** Without the custom resource the webhook is removed first; one whose owner was removed on purpose stays. */
  async #withdraw(owner: JsonObject | undefined): Promise<void> {
    const { operator, leading, log } = this.#options;
    if (listAt(owner, "metadata", "finalizers").includes("orphan")) return;
    const webhook = await this.#objects.read(operator.webhook);
    const isOwned = listAt(webhook, "metadata", "ownerReferences").some(
      (one) => at(one, "kind") === operator.resource["kind"],
    );
    if (webhook === undefined || !isOwned || !leading()) return;
    await this.#objects.remove({ ...operator.webhook, ...webhook });
    log.info({ object: describeObject(operator.webhook) }, "the custom resource is gone: removed");
  }

  async #observe(owner: JsonObject): Promise<{ state: OperandState; secrets: SecretsPlan }> {
    const { client, operator, image, serverVersion } = this.#options;
    const { namespace, service } = operator;
    if (operator.isValid(owner) || uidOf(owner) !== uidOf(this.#valid)) this.#valid = owner;
    const valid = this.#valid ?? owner;
    const secret = (name: string) => ({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace } });
    const references = [...operator.observed, secret(operator.servingSecret), secret(operator.paths.secret)];
    const read = await Promise.all(references.map((one) => this.#objects.read(one)));
    const found = new Map(references.map((one, i) => [describeObject(one), read[i]]));
    const live = (reference: OperandReference) => found.get(describeObject(reference));
    const replicas = await serviceEndpoints(client, namespace, service);
    const now = this.#now();
    const token = registeredToken(live(operator.webhook));
    const secrets = await this.#secrets.plan({
      serving: live(secret(operator.servingSecret)),
      paths: live(secret(operator.paths.secret)),
      published: operator.publishedBundle(live),
      registeredToken: token,
      pathsShown: token !== undefined && callsMayHaveFailed(this.#endpoints, replicas),
      issuer: operator.certificatesOf(valid),
      now,
    });
    this.#endpoints = replicas;
    const state: OperandState = {
      owner,
      valid,
      live,
      image,
      ready: replicas.endpoints.some(({ ready }) => ready),
      certificate: secrets.certificate,
      caBundle: secrets.caBundle,
      pathToken: secrets.pathToken,
      secrets,
      serverVersion: serverVersion(),
      failure: undefined,
      now,
    };
    return { state, secrets };
  }

  /** Whether that changed something. */
  async #make(step: OperandStep, state: OperandState, secrets: SecretsPlan): Promise<boolean> {
    const { leading, log } = this.#options;
    if ("remove" in step) {
      const found = await this.#readIfServed(step.remove);
      if (found === undefined || !leading()) return false;
      await this.#objects.remove({ ...step.remove, ...found });
      log.info({ object: describeObject(step.remove) }, "removed");
      return true;
    }
    const live = await this.#objects.read(step.apply);
    const wanted = trusting(step.apply, live, secrets);
    if (this.#repairs.isInVain(wanted, live) || !leading()) return false;
    const isWebhook = wanted["webhooks"] !== undefined;
    await this.#repairs.write(wanted, live, isWebhook ? webhookDeviations : objectDeviations);
    const isChanged = live === undefined || objectDeviations(wanted, live).length > 0;
    if (isChanged)
      log.info(
        { object: describeObject(wanted), generation: at(state.owner, "metadata", "generation") ?? 0 },
        live === undefined ? "created" : "updated",
      );
    return isChanged;
  }

  /** Objects of an API that is not served any more are gone. */
  async #readIfServed(reference: OperandReference): Promise<JsonObject | undefined> {
    const apiVersion = stringAt(reference, "apiVersion") ?? "";
    const isServed = !apiVersion.includes("/") || (await this.#objects.serves(apiVersion));
    return isServed ? this.#objects.read(reference) : undefined;
  }

  async #writeStatus(owner: JsonObject, status: JsonObject): Promise<void> {
    if (isPartOf(status, at(owner, "status") ?? {}) || !this.#options.leading()) return;
    await this.#objects.applyStatus(owner, status);
  }

  async #reportIgnored(): Promise<void> {
    const { operator, publish, leading } = this.#options;
    for (const object of await this.#objects.list(operator.resource)) {
      if (nameOf(object) === nameOf(operator.resource)) continue;
      const report = operator.ignored(object, this.#now());
      if (report === undefined || !leading()) continue;
      await this.#objects.applyStatus(object, report.status);
      publish(report.events);
    }
  }
}

function uidOf(object: JsonObject | undefined): string | undefined {
  return stringAt(object, "metadata", "uid");
}

/** With the bundle that an injector wrote; until then, it refuses nothing. */
function trusting(wanted: JsonObject, live: JsonObject | undefined, { accepts }: SecretsPlan): JsonObject {
  const isInjected = listAt(wanted, "webhooks").some(
    (entry) => at(entry, "clientConfig", "caBundle") === undefined,
  );
  return isInjected
    ? withInjectedBundle(wanted, live, { last: undefined, accepts: accepts ?? (() => false) })
    : wanted;
}

/** Whether a stored status has all of a part, conditions by their type. */
function isPartOf(part: JsonObject, stored: Json): boolean {
  const conditions = listAt(stored, "conditions");
  return Object.entries(part).every(([field, value]) =>
    field === "conditions" && Array.isArray(value)
      ? value.every((one) => conditions.some((other) => equal(one, other)))
      : equal(value, at(stored, field)),
  );
}

function asJson(steps: readonly OperandStep[]): Json {
  return steps as unknown as Json;
}

/** OLM names the object of an operator that it installed in this variable, and lets the operator write it. */
export const OPERATOR_CONDITION_VARIABLE = "OPERATOR_CONDITION_NAME";

interface OperatorConditionOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly name: string;
  readonly fieldManager: string;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
}

/**
 * Tells OLM whether the operator may be replaced: not while pods of the operand are. A stuck rollout does not count,
 * because another version may fix it.
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

  /** Follows the status of the custom resource; `undefined` if there is none. Never rejects: the operand comes first. */
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
