import type { AdmissionRequest } from "../../../core/evaluate/request.ts";
import { nameIn } from "../../../core/evaluate/status.ts";
import type { Path } from "../../../core/path.ts";
import type { PodFieldError } from "../field-error.ts";

/** As the API server prints errors of validation: `Pod "p" is invalid: spec.os.name: Required value`. */
export function fieldErrorsMessage(request: AdmissionRequest, errors: readonly PodFieldError[]): string {
  const { group, kind } = request.kind;
  const texts = errors.map(({ field, message }) => `${field}: ${message}`);
  const name = JSON.stringify(nameIn(request.name, request.object));
  const all = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  return `${group === "" ? kind : `${kind}.${group}`} ${name} is invalid: ${all}`;
}

/** The steps of a field as it is printed: `spec.containers[0].image`, `metadata.annotations[a.b/c]`. */
export function stepsOf(field: string): Path {
  return [...field.matchAll(/\[([^\]]*)\]|([^.[\]]+)/g)].map(([, inside, plain]) => {
    if (inside === undefined) return plain ?? "";
    return /^[0-9]+$/.test(inside) ? Number(inside) : inside;
  });
}
