import { afterEach, expect, test, vi } from "vitest";
import { isOwnCluster } from "./api-server.ts";

afterEach(() => vi.unstubAllEnvs());

const POD = { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443" };

// A named cluster is not the pod's own: usher must not operate it as if it ran there.
test.each([
  ["a pod", POD, {}, true],
  ["a pod, and a variable that names a kubeconfig", { ...POD, KUBECONFIG: "/other" }, {}, false],
  ["a pod, and a kubeconfig", POD, { kubeconfig: "/other" }, false],
  ["a pod, and a context", POD, { context: "other" }, false],
  ["no pod", { KUBERNETES_SERVICE_HOST: undefined }, {}, false],
])("own cluster: %s", (_name, variables, options, own) => {
  for (const [name, value] of Object.entries({ KUBECONFIG: undefined, ...variables }))
    vi.stubEnv(name, value);
  expect(isOwnCluster(options)).toBe(own);
});
