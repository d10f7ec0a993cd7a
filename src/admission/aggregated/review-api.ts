/** A resource of an aggregated API that takes AdmissionReviews: cluster-scoped, and nothing can be done but create them. */
export interface ReviewApi {
  readonly group: string;
  readonly version: string;
  /** The plural: `validatingadmissionreviews`. */
  readonly resource: string;
}

/** What is created there. */
export const REVIEW_KIND = { group: "admission.k8s.io", version: "v1", kind: "AdmissionReview" } as const;

export function reviewPath({ group, version, resource }: ReviewApi): string {
  return `/apis/${group}/${version}/${resource}`;
}
