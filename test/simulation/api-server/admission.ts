import { isDeepStrictEqual } from "node:util";
import { Environment, type Optional } from "@marcbachmann/cel-js";
import { applyPatch, type Operation } from "rfc6902";
import { at, equal, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import { labelsOf, nameOf } from "../../../src/core/kubernetes/object.ts";
import { compileSelector, matches } from "../../../src/core/kubernetes/selectors/label-selector.ts";
import { type Resource, storedName } from "./resources.ts";
import { badRequest, forbidden, internalError, notFound, Refusal, refusal } from "./status.ts";

/**
 * Admission by webhooks and by ValidatingAdmissionPolicies: the objects in the store, matched, called and evaluated as the
 * API server does. Policies may have params by a selector; variables, authorizer, namespaceObject and warnings are left
 * out.
 */

export interface UserInfo {
  readonly username: string;
  readonly groups: readonly string[];
}

/** A write that webhooks are asked about. */
export interface Attributes {
  readonly operation: "CREATE" | "UPDATE" | "DELETE";
  readonly resource: Resource;
  readonly subresource: string;
  /** The kind of the object, which a subresource may change: a Binding of a pod. */
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly object: JsonObject | undefined;
  readonly oldObject: JsonObject | undefined;
  readonly options: JsonObject;
  readonly dryRun: boolean;
  readonly user: UserInfo;
}

/** A webhook as it is called. */
export interface WebhookCall {
  readonly name: string;
  /** `service` with its path, or `url`; and the `caBundle`. */
  readonly clientConfig: JsonObject;
  readonly timeoutMs: number;
}

/** Sends an AdmissionReview; the result is the review in the response, or why none came. May stay pending forever. */
export type CallWebhook = (
  review: JsonObject,
  webhook: WebhookCall,
) => Promise<JsonObject | { readonly failed: string }>;

/** The objects that admission reads, in the state that this API server has seen. */
export interface AdmissionView {
  readonly list: (resource: string) => readonly JsonObject[];
  readonly namespace: (name: string) => JsonObject | undefined;
  /** All objects of a kind. */
  readonly ofKind: (apiVersion: string, kind: string) => readonly JsonObject[];
}

interface AdmissionOptions {
  readonly view: AdmissionView;
  readonly call: CallWebhook | undefined;
  readonly schedule: (delayMs: number, run: () => void) => unknown;
  readonly uid: () => string;
}

type Phase = "Mutating" | "Validating";

const REGISTRATION = "admissionregistration.k8s.io";

export class Admission {
  readonly #options: AdmissionOptions;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /**
   * The object after all mutating webhooks. A webhook with reinvocationPolicy IfNeeded is called once more if a later
   * one has changed the object.
   */
  async mutate(attributes: Attributes, warnings: string[]): Promise<JsonObject | undefined> {
    const hooks = this.#matching("Mutating", attributes.resource);
    let { object } = attributes;
    const outputs = new Map<JsonObject, JsonObject | undefined>();
    for (const hook of hooks) {
      const response = await this.#ask(hook, { ...attributes, object }, warnings);
      if (response === undefined) continue;
      object = patched(hook, object, response);
      outputs.set(hook, object);
    }
    for (const [hook, output] of outputs) {
      const again = stringAt(hook, "reinvocationPolicy") === "IfNeeded" && !equal(output, object);
      const response = again ? await this.#ask(hook, { ...attributes, object }, warnings) : undefined;
      if (response !== undefined) object = patched(hook, object, response);
    }
    return object;
  }

  /** Throws the refusal of the first policy that refuses, else of the first webhook. All webhooks are called, at the same time. */
  async validate(attributes: Attributes, warnings: string[]): Promise<void> {
    this.#evaluatePolicies(attributes);
    const hooks = this.#matching("Validating", attributes.resource);
    const results = await Promise.allSettled(hooks.map((hook) => this.#ask(hook, attributes, warnings)));
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  #matching(phase: Phase, { group }: Resource): JsonObject[] {
    // A webhook must not be able to prevent its own removal.
    if (group === REGISTRATION) return [];
    const resource = `${phase.toLowerCase()}webhookconfigurations.${REGISTRATION}`;
    return this.#options.view
      .list(resource)
      .flatMap((configuration) => listAt(configuration, "webhooks").filter(isObject));
  }

  /** The response of a webhook that allows; `undefined` if it is not asked, or failed and is ignored. */
  async #ask(entry: JsonObject, given: Attributes, warnings: string[]): Promise<JsonObject | undefined> {
    const name = stringAt(entry, "name") ?? "";
    const closed = stringAt(entry, "failurePolicy") !== "Ignore";
    const attributes = inMatchedVersion(entry, listAt(entry, "rules"), given);
    if (attributes === undefined || !this.#selects(entry, attributes)) return undefined;
    const uid = this.#options.uid();
    const request = admissionRequest(uid, attributes, given);
    const conditions = meetsConditions(entry, valuesOf(request));
    if (conditions === false) return undefined;
    if (conditions !== true) {
      if (!closed) return undefined;
      throw forbidden(given.resource, given.name, `failed to evaluate match conditions: ${conditions.error}`);
    }
    const sideEffects = stringAt(entry, "sideEffects");
    if (attributes.dryRun && sideEffects !== "None" && sideEffects !== "NoneOnDryRun")
      throw badRequest(`admission webhook ${JSON.stringify(name)} does not support dry run`);
    const review = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request };
    const timeoutMs = 1_000 * Number(at(entry, "timeoutSeconds") ?? 10);
    const clientConfig = (entry["clientConfig"] ?? {}) as JsonObject;
    const answer = await this.#call(review, {
      name,
      clientConfig,
      timeoutMs,
    });
    const response = at(answer, "response");
    const failed = stringAt(answer, "failed") ?? problemWith(response, uid);
    if (failed !== undefined) {
      if (!closed) return undefined;
      throw internalError(`failed calling webhook ${JSON.stringify(name)}: ${failed}`);
    }
    warnings.push(...listAt(response, "warnings").map(String));
    if (at(response, "allowed") === true) return response as JsonObject;
    throw denial(name, at(response, "status"));
  }

  #call(review: JsonObject, call: WebhookCall): Promise<JsonObject> {
    const { call: send = async () => ({ failed: "failed to call webhook: connection refused" }), schedule } =
      this.#options;
    const { promise, resolve } = Promise.withResolvers<JsonObject>();
    schedule(call.timeoutMs, () => resolve({ failed: "failed to call webhook: context deadline exceeded" }));
    send(review, call).then(resolve, (error: unknown) =>
      resolve({ failed: `failed to call webhook: ${error}` }),
    );
    return promise;
  }

  #evaluatePolicies(given: Attributes): void {
    const { view } = this.#options;
    if (given.resource.group === REGISTRATION) return;
    const bindings = view.list(`validatingadmissionpolicybindings.${REGISTRATION}`);
    for (const policy of view.list(`validatingadmissionpolicies.${REGISTRATION}`))
      for (const binding of bindings.filter((one) => stringAt(one, "spec", "policyName") === nameOf(policy)))
        this.#evaluatePolicy(policy, binding, given);
  }

  #evaluatePolicy(policy: JsonObject, binding: JsonObject, given: Attributes): void {
    const constraints = at(policy, "spec", "matchConstraints");
    const attributes = inMatchedVersion(constraints, listAt(constraints, "resourceRules"), given);
    const isSelected =
      attributes !== undefined &&
      this.#selects(constraints, attributes) &&
      this.#selects(at(binding, "spec", "matchResources"), attributes);
    if (!isSelected) return;
    const request = admissionRequest(this.#options.uid(), attributes, given);
    const actions = listAt(binding, "spec", "validationActions");
    for (const params of this.#paramsOf(policy, binding)) {
      const violation = violationOf(policy, { ...valuesOf(request), params });
      if (violation === undefined) continue;
      const message = `ValidatingAdmissionPolicy '${nameOf(policy)}' with binding '${nameOf(binding)}' denied request: ${violation.message}`;
      if (actions.includes("Deny")) throw denialByPolicy(given, violation.reason, message);
    }
  }

  /** The objects that a policy is evaluated with, one after the other; none is needed if the policy names no kind. */
  #paramsOf(policy: JsonObject, binding: JsonObject): readonly (JsonObject | null)[] {
    const kind = at(policy, "spec", "paramKind");
    if (kind === undefined) return [null];
    const reference = at(binding, "spec", "paramRef");
    const selector = at(reference, "selector");
    if (selector === undefined || stringAt(reference, "parameterNotFoundAction") !== "Allow")
      throw new Error(
        `${nameOf(binding)}: the simulation knows only params by a selector, and Allow without any`,
      );
    const isSelected = selectorOf(selector);
    return this.#options.view
      .ofKind(stringAt(kind, "apiVersion") ?? "", stringAt(kind, "kind") ?? "")
      .filter((one) => isSelected(labelsOf(one)));
  }

  #selects(entry: Json | undefined, { resource, namespace, object, oldObject }: Attributes): boolean {
    const byObject = selectorOf(at(entry, "objectSelector"));
    const candidates = [object, oldObject].filter((one) => one !== undefined);
    if (!candidates.some((one) => byObject(labelsOf(one)))) return false;
    const byNamespace = selectorOf(at(entry, "namespaceSelector"));
    if (storedName(resource) === "namespaces") return byNamespace(labelsOf(object ?? oldObject ?? {}));
    if (!resource.namespaced) return true;
    const found = this.#options.view.namespace(namespace);
    if (found === undefined)
      throw notFound({ group: "", resource: "namespaces", kind: "Namespace" }, namespace);
    return byNamespace(labelsOf(found));
  }
}

function selectorOf(selector: Json | undefined): (labels: JsonObject | undefined) => boolean {
  const compiled = compileSelector(selector ?? {}, []).selector;
  return (labels) => matches(compiled, labels);
}

/** The write in the version in which a webhook or policy wants the object; `undefined` if no rule matches. */
function inMatchedVersion(
  entry: Json | undefined,
  rules: readonly Json[],
  attributes: Attributes,
): Attributes | undefined {
  const { resource } = attributes;
  const equivalent = stringAt(entry, "matchPolicy") !== "Exact";
  const others = equivalent ? resource.versions.filter((one) => one !== resource.version) : [];
  const version = [resource.version, ...others].find((one) =>
    rules.some((rule) => matchesRule(rule, attributes, one)),
  );
  return version === undefined ? undefined : inVersion(attributes, version);
}

function matchesRule(rule: Json, attributes: Attributes, version: string): boolean {
  const { resource, subresource, operation } = attributes;
  const has = (field: string, value: string): boolean =>
    listAt(rule, field).some((one) => one === "*" || one === value);
  const scope = stringAt(rule, "scope") ?? "*";
  const isNamespaced = resource.namespaced;
  if (scope !== "*" && (scope === "Namespaced") !== isNamespaced) return false;
  const isResource = listAt(rule, "resources").some((one) => {
    const [name, sub = ""] = String(one).split("/");
    return (
      (name === "*" || name === resource.resource) && (one === "*/*" || sub === "*" || sub === subresource)
    );
  });
  return (
    has("apiGroups", resource.group) &&
    has("apiVersions", version) &&
    has("operations", operation) &&
    isResource
  );
}

function inVersion(attributes: Attributes, version: string): Attributes {
  const { resource } = attributes;
  if (version === resource.version) return attributes;
  const apiVersion = resource.group === "" ? version : `${resource.group}/${version}`;
  const converted = (object: JsonObject | undefined) =>
    object === undefined ? undefined : { ...object, apiVersion };
  return {
    ...attributes,
    resource: { ...resource, version },
    object: converted(attributes.object),
    oldObject: converted(attributes.oldObject),
  };
}

function admissionRequest(uid: string, attributes: Attributes, asked: Attributes): JsonObject {
  const { operation, subresource, namespace, name, object, oldObject, options, dryRun, user } = attributes;
  const kindOf = ({ resource: { group, version }, kind }: Attributes) => ({ group, version, kind });
  const resourceOf = ({ resource: { group, version, resource } }: Attributes) => ({
    group,
    version,
    resource,
  });
  return {
    uid,
    kind: kindOf(attributes),
    resource: resourceOf(attributes),
    ...(subresource === "" ? {} : { subResource: subresource, requestSubResource: subresource }),
    requestKind: kindOf(asked),
    requestResource: resourceOf(asked),
    ...(name === "" ? {} : { name }),
    ...(namespace === "" ? {} : { namespace }),
    operation,
    userInfo: { username: user.username, groups: user.groups },
    object: object ?? null,
    oldObject: oldObject ?? null,
    dryRun,
    options,
  };
}

const cel = new Environment({ unlistedVariablesAreDyn: true, enableOptionalTypes: true });
cel.registerOperator("optional == optional", (a: Optional, b: Optional) =>
  isDeepStrictEqual(a.orValue(undefined), b.orValue(undefined)),
);
const programs = new Map<string, ReturnType<Environment["parse"]>>();

/** What expressions read. */
type Values = Readonly<Record<"request" | "object" | "oldObject", Json | undefined>> & {
  readonly params?: JsonObject | null;
};

function valuesOf(request: JsonObject): Values {
  return { request, object: request["object"], oldObject: request["oldObject"] };
}

function evaluated(expression: string, values: Values): unknown {
  const program = programs.get(expression) ?? cel.parse(expression);
  programs.set(expression, program);
  return program({ ...values });
}

/** Whether all matchConditions hold. A condition that is false decides, even if another one fails. */
function meetsConditions(entry: Json | undefined, values: Values): boolean | { readonly error: string } {
  let error: string | undefined;
  for (const condition of listAt(entry, "matchConditions")) {
    try {
      if (evaluated(stringAt(condition, "expression") ?? "", values) !== true) return false;
    } catch (failure) {
      error ??= textOf(failure);
    }
  }
  return error === undefined ? true : { error };
}

function textOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}

/** Why a policy refuses, if it does. An expression that fails counts unless the policy ignores failures. */
function violationOf(
  policy: JsonObject,
  values: Values,
): { readonly reason: string; readonly message: string } | undefined {
  const isClosed = stringAt(policy, "spec", "failurePolicy") !== "Ignore";
  const failed = (message: string) => (isClosed ? { reason: "Invalid", message } : undefined);
  const conditions = meetsConditions(policy["spec"], values);
  if (conditions === false) return undefined;
  if (conditions !== true) return failed(conditions.error);
  for (const validation of listAt(policy, "spec", "validations")) {
    const expression = stringAt(validation, "expression") ?? "";
    try {
      if (evaluated(expression, values) === true) continue;
    } catch (failure) {
      const violation = failed(`expression '${expression}' resulted in error: ${textOf(failure)}`);
      if (violation === undefined) continue;
      return violation;
    }
    const said = stringAt(validation, "messageExpression");
    const message =
      said === undefined ? stringAt(validation, "message") : String(evaluated(said, values)).trim();
    return {
      reason: stringAt(validation, "reason") ?? "Invalid",
      message: message ?? `failed expression: ${expression}`,
    };
  }
  return undefined;
}

const CODES: Readonly<Record<string, number>> = {
  Unauthorized: 401,
  Forbidden: 403,
  RequestEntityTooLarge: 413,
  Invalid: 422,
};

function denialByPolicy({ resource, name }: Attributes, reason: string, message: string): Refusal {
  const { message: text, details } = forbidden(resource, name, message).body as JsonObject;
  return refusal(CODES[reason] ?? 422, reason, String(text), {
    ...(details as JsonObject),
    causes: [{ message }],
  });
}

function problemWith(response: Json | undefined, uid: string): string | undefined {
  if (!isObject(response)) return "expected response, got nothing";
  if (stringAt(response, "uid") !== uid) return `expected response.uid=${JSON.stringify(uid)}`;
  const hasPatch = response["patch"] !== undefined;
  if (hasPatch && stringAt(response, "patchType") !== "JSONPatch") return "unexpected patchType";
  return undefined;
}

function denial(name: string, status: Json | undefined): Refusal {
  const message = stringAt(status, "message") ?? stringAt(status, "reason");
  const denied = `admission webhook ${JSON.stringify(name)} denied the request`;
  const code = Math.max(400, Number(at(status, "code") ?? 0));
  const given = isObject(status) ? status : {};
  return new Refusal(code, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    ...given,
    status: "Failure",
    message:
      message === undefined || message === "" ? `${denied} without explanation` : `${denied}: ${message}`,
    code,
  });
}

function patched(
  hook: JsonObject,
  object: JsonObject | undefined,
  response: JsonObject,
): JsonObject | undefined {
  const patch = stringAt(response, "patch");
  if (patch === undefined || patch === "" || object === undefined) return object;
  const operations = JSON.parse(Buffer.from(patch, "base64").toString()) as Operation[];
  const copy = structuredClone(object);
  const [problem] = applyPatch(copy, operations).filter((one) => one !== null);
  if (problem !== undefined)
    throw internalError(`webhook ${stringAt(hook, "name")}: invalid patch: ${problem.message}`);
  return copy;
}
