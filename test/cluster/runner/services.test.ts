import { expect, test } from "vitest";
import type { JsonObject } from "../../../src/core/json.ts";
import { serviceRoutes } from "./services.ts";

function service(name: string, clusterIP: string, ports: JsonObject[]): JsonObject {
  return { metadata: { namespace: "ns", name }, spec: { clusterIP, ports } };
}

function slice(name: string, ports: JsonObject[], endpoints: JsonObject[]): JsonObject {
  return { metadata: { namespace: "ns", labels: { "kubernetes.io/service-name": name } }, ports, endpoints };
}

test("a Service maps to the ready endpoints of its slices, port by port", () => {
  const services = [
    service("web", "10.96.0.9", [
      { name: "https", port: 443 },
      { name: "metrics", port: 9090 },
    ]),
  ];
  const slices = [
    slice(
      "web",
      [
        { name: "https", port: 8443 },
        { name: "metrics", port: 9090 },
      ],
      [
        { addresses: ["10.245.0.2"], conditions: { ready: true } },
        { addresses: ["10.245.0.3"], conditions: { ready: false } },
      ],
    ),
    slice(
      "web",
      [{ name: "https", port: 8443 }],
      [{ addresses: ["10.245.0.4"], conditions: { ready: true } }],
    ),
    slice(
      "other",
      [{ name: "https", port: 8443 }],
      [{ addresses: ["10.245.0.5"], conditions: { ready: true } }],
    ),
  ];
  expect(serviceRoutes(services, slices)).toEqual(
    new Map([
      ["10.96.0.9:443", ["10.245.0.2:8443", "10.245.0.4:8443"]],
      ["10.96.0.9:9090", ["10.245.0.2:9090"]],
    ]),
  );
});

test("a port without a name matches one without a name, and a headless Service has no address", () => {
  const services = [service("web", "10.96.0.9", [{ port: 80 }]), service("none", "None", [{ port: 80 }])];
  const slices = [slice("web", [{ name: "", port: 8080 }], [{ addresses: ["10.245.0.2"] }])];
  expect(serviceRoutes(services, slices)).toEqual(new Map([["10.96.0.9:80", ["10.245.0.2:8080"]]]));
});
