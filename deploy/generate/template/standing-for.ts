/** Registered in place of the namespace of a release, which only Helm knows. */
export const NAMESPACE = "namespace-of-the-release";

/** Registered in place of the startup taint of a release's configuration. */
export const STARTUP_TAINT = "usher.dev/startup-taint-of-the-release";

/** A placeholder for a value of the release, and the expression of the value. */
export const STANDING_FOR: ReadonlyMap<string, string> = new Map([
  [NAMESPACE, ".Release.Namespace"],
  [STARTUP_TAINT, 'dig "modules" "node-labels" "startupTaint" "usher.dev/starting" $.Values.configuration'],
]);
