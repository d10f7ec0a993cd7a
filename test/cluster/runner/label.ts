/** Pods with this label at "true" are run for real, as local processes, and not played by kwok. */
export const RUN_LABEL = "usher.dev/run";
