/** A resource of an aggregated API that accepts AdmissionReviews: cluster-scoped, with create as the only verb. */
export interface ReviewApi {
  readonly group: string;
  readonly version: string;
  /** The plural: `validatingadmissionreviews`. */
  readonly resource: string;
}

/** The kind that is created there. */
export const REVIEW_KIND = { group: "admission.k8s.io", version: "v1", kind: "AdmissionReview" } as const;

export function reviewPath({ group, version, resource }: ReviewApi): string {
  return `/apis/${group}/${version}/${resource}`;
}
