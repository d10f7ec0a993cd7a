import { PROVENANCE } from "./annotation.ts";

const NOTE = `metadata.annotations['${PROVENANCE}']`;

/**
 * CEL: the request brings a provenance annotation other than the stored one. Match conditions of mutating hooks include
 * it: each module validates the entries of its own name, and other modules' calls keep them because they rely on that.
 */
export const SENT_PROVENANCE = `(${carries("object", PROVENANCE)} && (oldObject == null || !${carries("oldObject", PROVENANCE)} || object.${NOTE} != oldObject.${NOTE}))`;

/** CEL: an object has an annotation. */
export function carries(object: string, annotation: string): string {
  return `(has(${object}.metadata.annotations) && '${annotation}' in ${object}.metadata.annotations)`;
}
