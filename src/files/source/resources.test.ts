import { expect, test } from "vitest";
import { greeter } from "../../../test/conformance/modules.ts";
import { Resources } from "./resources.ts";

const resources = new Resources([greeter]);

test.each([
  ["v1", "Pod", "pods", "Namespaced"],
  ["v1", "Endpoints", "endpoints", "Namespaced"],
  ["apps/v1", "Deployment", "deployments.apps", "Namespaced"],
  ["networking.k8s.io/v1", "Ingress", "ingresses.networking.k8s.io", "Namespaced"],
  ["networking.k8s.io/v1", "NetworkPolicy", "networkpolicies.networking.k8s.io", "Namespaced"],
  ["scheduling.k8s.io/v1", "PriorityClass", "priorityclasses.scheduling.k8s.io", "Cluster"],
  ["v1", "Namespace", "namespaces", "Cluster"],
  ["user.openshift.io/v1", "User", "users.user.openshift.io", "Cluster"],
  ["conformance.usher.dev/v1", "Greeting", "greetings.conformance.usher.dev", "Cluster"],
  ["example.org/v1", "Proxy", "proxies.example.org", undefined],
  ["example.org/v1", "Key", "keys.example.org", undefined],
  ["example.org/v1", "Box", "boxes.example.org", undefined],
])("%s %s is resource %s", (apiVersion, kind, name, scope) => {
  expect(resources.of(apiVersion, kind)).toMatchObject({ name, scope });
});

test("an unknown version of a module's kind is still that kind, so that its check can report it", () => {
  expect(resources.of("conformance.usher.dev/v9", "Greeting").policy?.kind).toBe("Greeting");
});
