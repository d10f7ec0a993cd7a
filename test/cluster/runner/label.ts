/** Pods with this label set to "true" run for real, as local processes, and are not simulated by kwok. */
export const RUN_LABEL = "usher.dev/run";
