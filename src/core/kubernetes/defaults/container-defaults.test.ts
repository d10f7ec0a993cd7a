import { expect, test } from "vitest";
import { defaultedContainer } from "./container-defaults.ts";

test("a bare container gets all defaults", () => {
  expect(defaultedContainer({ name: "c", image: "nginx" })).toEqual({
    name: "c",
    image: "nginx",
    imagePullPolicy: "Always",
    resources: {},
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
  });
  expect(defaultedContainer({})["imagePullPolicy"]).toBe("IfNotPresent");
});

test("set values stay, and empty ones are filled", () => {
  const said = {
    image: "nginx",
    imagePullPolicy: "Never",
    resources: { limits: { cpu: "1" } },
    terminationMessagePath: "/x",
    terminationMessagePolicy: "FallbackToLogsOnError",
    unknown: { stays: true },
  };
  expect(defaultedContainer(said)).toBe(said);
  expect(defaultedContainer({ ...said, imagePullPolicy: "", resources: null })).toMatchObject({
    imagePullPolicy: "Always",
    resources: {},
  });
});

test("fills nested fields of a container", () => {
  const filled = defaultedContainer({
    ports: [{ containerPort: 80 }, { containerPort: 53, protocol: "UDP" }, null],
    env: [
      { name: "A", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
      { name: "B", value: "b" },
      { name: "C", valueFrom: { fileKeyRef: { volumeName: "v", path: "p", key: "k" } } },
      { name: "D", valueFrom: { fileKeyRef: { volumeName: "v", path: "p", key: "k", optional: true } } },
    ],
    livenessProbe: { httpGet: { port: 80 }, periodSeconds: 5 },
    readinessProbe: { grpc: { port: 9 }, failureThreshold: 0 },
    startupProbe: { exec: { command: ["x"] } },
    lifecycle: { preStop: { httpGet: { port: 1, path: "/bye" } }, postStart: { httpGet: { port: 2 } } },
  });
  expect(filled["ports"]).toEqual([
    { containerPort: 80, protocol: "TCP" },
    { containerPort: 53, protocol: "UDP" },
    null,
  ]);
  expect(filled["env"]).toEqual([
    { name: "A", valueFrom: { fieldRef: { fieldPath: "metadata.name", apiVersion: "v1" } } },
    { name: "B", value: "b" },
    { name: "C", valueFrom: { fileKeyRef: { volumeName: "v", path: "p", key: "k", optional: false } } },
    { name: "D", valueFrom: { fileKeyRef: { volumeName: "v", path: "p", key: "k", optional: true } } },
  ]);
  const times = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };
  expect(filled["livenessProbe"]).toEqual({
    ...times,
    periodSeconds: 5,
    httpGet: { port: 80, path: "/", scheme: "HTTP" },
  });
  expect(filled["readinessProbe"]).toEqual({ ...times, grpc: { port: 9, service: "" } });
  expect(filled["startupProbe"]).toEqual({ ...times, exec: { command: ["x"] } });
  expect(filled["lifecycle"]).toEqual({
    preStop: { httpGet: { port: 1, path: "/bye", scheme: "HTTP" } },
    postStart: { httpGet: { port: 2, path: "/", scheme: "HTTP" } },
  });
});
