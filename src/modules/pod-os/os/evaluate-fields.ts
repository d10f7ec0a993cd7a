import type { Denial } from "../../../core/decision/decision.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import { nameIn } from "../../../core/decision/status.ts";
import { at, isObject, type JsonObject } from "../../../core/json.ts";
import { isBuiltIn, podTemplateOf, specPath } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import { fieldPath, type Path } from "../../../core/path.ts";
import type { PodFieldError } from "../field-error.ts";
import { validatePodOSResize, validatePodOSUpdate } from "./update.ts";
import { validatePodOS } from "./validate.ts";

/** As many warnings as help; the first errors are the rest's cause more often than not. */
const MOST_FINDINGS = 16;

/** Each takes more than 16 characters of a message, which ends at 8,192. */
const MOST_ERRORS = 512;

interface FieldsVerdict {
  readonly denial?: Omit<Denial, "message"> & { readonly message: string };
  readonly findings: readonly Finding[];
}

/**
 * Fields that the OS of a pod or template forbids. The API server refuses them in built-in kinds before it calls
 * webhooks, so only reviews without one get this refusal; it does not know the templates of configured kinds, which get
 * a warning in a cluster.
 */
export function evaluateFields(context: Context): FieldsVerdict {
  const { request, view, installation } = context;
  const { group, resource } = request.resource;
  const workload = installation.workloads.byResource(group, resource);
  const unvalidated = request.unvalidated === true;
  // A pod that an API server admitted is valid by its own rules, which may be those of another release.
  const validated = !unvalidated && view.serverVersion !== undefined;
  if (workload === undefined || (validated && isBuiltIn(workload))) return { findings: [] };
  const errors = workload.template.length === 0 ? podErrors(context) : templateErrors(context);
  if (errors.length === 0) return { findings: [] };
  const refuses = unvalidated || isBuiltIn(workload);
  const findings = errors.slice(0, MOST_FINDINGS).map(
    ({ field, message }): Finding => ({
      rule: "os-fields",
      outcome: refuses ? "violated" : "would-violate",
      path: stepsOf(field),
      ...(refuses
        ? { message, verbatim: true }
        : { message: `${field}: ${message}; no such pod can be created`, code: "USHER-O05", warn: 70 }),
    }),
  );
  if (!refuses) return { findings };
  const message = fieldErrorsMessage(request, errors);
  return { denial: { code: 422, reason: "Invalid", message }, findings };
}

function podErrors({ request, draft }: Context): PodFieldError[] {
  const [now, before] = [specOf(draft.object), specOf(draft.old)];
  if (request.operation === "CREATE") return validatePodOS(now, "spec", MOST_ERRORS);
  return request.subResource === "resize"
    ? validatePodOSResize(before)
    : validatePodOSUpdate(before, now, MOST_ERRORS);
}

/** A template that did not change is the business of who wrote it. */
function templateErrors({ request, draft, installation }: Context): PodFieldError[] {
  const { group, resource } = request.resource;
  const workload = installation.workloads.byResource(group, resource);
  if (workload === undefined || request.subResource !== "") return [];
  const errors = validatePodOS(
    podTemplateOf(draft.object, workload)?.spec,
    fieldPath(specPath(workload)),
    MOST_ERRORS,
  );
  // Comparing templates costs more than looking at the few fields of an OS.
  return errors.length > 0 && draft.changed([workload.template]) ? errors : [];
}

function specOf(object: JsonObject | undefined): JsonObject | undefined {
  const spec = at(object, "spec");
  return isObject(spec) ? spec : undefined;
}

/** As the API server prints errors of validation: `Pod "p" is invalid: spec.os.name: Required value`. */
export function fieldErrorsMessage(request: AdmissionRequest, errors: readonly PodFieldError[]): string {
  const { group, kind } = request.kind;
  const texts = errors.map(({ field, message }) => `${field}: ${message}`);
  const name = JSON.stringify(nameIn(request.name, request.object));
  const all = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  return `${group === "" ? kind : `${kind}.${group}`} ${name} is invalid: ${all}`;
}

/** The steps of a field as it is printed: `spec.containers[0].image`, `metadata.annotations[a.b/c]`. */
function stepsOf(field: string): Path {
  return [...field.matchAll(/\[([^\]]*)\]|([^.[\]]+)/g)].map(([, inside, plain]) => {
    if (inside === undefined) return plain ?? "";
    return /^[0-9]+$/.test(inside) ? Number(inside) : inside;
  });
}
