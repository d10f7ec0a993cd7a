import { describe, expect, test } from "vitest";
import { CountedReads } from "../../../../test/growth/counted-reads.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import { BUILT_IN_WORKLOADS, specPath } from "../../../core/kubernetes/workloads.ts";
import { fieldPath } from "../../../core/path.ts";
import { CONTAINER_LISTS, LINUX_DETAIL, WINDOWS_DETAIL } from "./tables.ts";
import { validatePodOSResize, validatePodOSUpdate } from "./update.ts";
import { validatePodOS } from "./validate.ts";

const WINDOWS = { os: { name: "windows" } };
const LINUX = { os: { name: "linux" } };
const lines = (spec: JsonObject, prefix?: string) =>
  validatePodOS(spec, prefix).map(({ field, message }) => `${field}: ${message}`);
const windows = (field: string) => `${field}: Forbidden: ${WINDOWS_DETAIL}`;

test.each<[string, JsonObject, string[]]>([
  ["no os", {}, []],
  ["null", { os: null }, []],
  ["linux", LINUX, []],
  ["windows", WINDOWS, []],
  ["an empty os", { os: {} }, ["spec.os.name: Required value"]],
  ["an empty name", { os: { name: "" } }, ["spec.os.name: Required value"]],
  ["null as name", { os: { name: null } }, ["spec.os.name: Required value"]],
  [
    "another name",
    { os: { name: "plan9" } },
    ['spec.os: Unsupported value: "plan9": supported values: "linux", "windows"'],
  ],
  [
    "case counts",
    { os: { name: "Linux" } },
    ['spec.os: Unsupported value: "Linux": supported values: "linux", "windows"'],
  ],
  [
    "what HTML reads",
    { os: { name: "<\u2028" } },
    ['spec.os: Unsupported value: "\\u003c\\u2028": supported values: "linux", "windows"'],
  ],
])("%s", (_name, spec, errors) => {
  expect(lines(spec)).toEqual(errors);
});

test("an unsupported OS ends all other OS rules", () => {
  const spec = {
    os: { name: "plan9" },
    hostPID: true,
    securityContext: { windowsOptions: {}, seLinuxOptions: {} },
  };
  expect(lines(spec)).toHaveLength(1);
});

describe("windows", () => {
  const context: readonly [string, Json][] = [
    ["appArmorProfile", {}],
    ["seLinuxOptions", {}],
    ["seccompProfile", {}],
    ["fsGroup", 0],
    ["fsGroupChangePolicy", "Always"],
    ["sysctls", [{ name: "a", value: "b" }]],
    ["runAsUser", 0],
    ["runAsGroup", 0],
    ["supplementalGroups", []],
    ["supplementalGroupsPolicy", "Strict"],
    ["seLinuxChangePolicy", "Recursive"],
  ];
  const pod: readonly [string, Json][] = [
    ["hostUsers", false],
    ["hostPID", true],
    ["hostIPC", true],
    ["shareProcessNamespace", false],
  ];
  const container: readonly [string, Json][] = [
    ["appArmorProfile", {}],
    ["seLinuxOptions", {}],
    ["seccompProfile", {}],
    ["capabilities", {}],
    ["readOnlyRootFilesystem", false],
    ["privileged", false],
    ["allowPrivilegeEscalation", false],
    ["procMount", "Default"],
    ["runAsUser", 0],
    ["runAsGroup", 0],
  ];

  test.each(context)("securityContext.%s is forbidden", (field, value) => {
    expect(lines({ ...WINDOWS, securityContext: { [field]: value } })).toEqual([
      windows(`spec.securityContext.${field}`),
    ]);
    expect(lines({ ...LINUX, securityContext: { [field]: value } })).toEqual([]);
    expect(lines({ ...WINDOWS, securityContext: { [field]: null } })).toEqual([]);
  });

  test.each(pod)("%s is forbidden", (field, value) => {
    expect(lines({ ...WINDOWS, [field]: value })).toEqual([windows(`spec.${field}`)]);
    expect(lines({ ...LINUX, [field]: value })).toEqual([]);
  });

  test.each(
    CONTAINER_LISTS.flatMap((list) => container.map(([field, value]) => [list, field, value] as const)),
  )("%s: securityContext.%s is forbidden", (list, field, value) => {
    const spec = { [list]: [{ name: "a" }, { name: "b", securityContext: { [field]: value } }] };
    expect(lines({ ...WINDOWS, ...spec })).toEqual([windows(`spec.${list}[1].securityContext.${field}`)]);
    expect(lines({ ...LINUX, ...spec })).toEqual([]);
    expect(lines(spec)).toEqual([]);
  });

  test("reports all at once, in the order of Kubernetes 1.37", () => {
    const securityContext = Object.fromEntries(container);
    const spec = {
      ...WINDOWS,
      ...Object.fromEntries(pod),
      securityContext: Object.fromEntries(context),
      resources: {},
      ...Object.fromEntries(CONTAINER_LISTS.map((list) => [list, [{ name: list, securityContext }]])),
    };
    expect(lines(spec)).toEqual([
      "spec.resources: Forbidden: may not be set for a windows pod",
      ...context.map(([field]) => windows(`spec.securityContext.${field}`)),
      ...pod.map(([field]) => windows(`spec.${field}`)),
      ...CONTAINER_LISTS.flatMap((list) =>
        container.map(([field]) => windows(`spec.${list}[0].securityContext.${field}`)),
      ),
    ]);
  });

  test("accepts Windows fields", () => {
    const spec = {
      ...WINDOWS,
      hostNetwork: true,
      hostPID: false,
      hostIPC: false,
      securityContext: { runAsNonRoot: true, sysctls: [], windowsOptions: { runAsUserName: "u" } },
      containers: [
        { name: "c", securityContext: { runAsNonRoot: true, windowsOptions: {} }, ports: [{ hostPort: 1 }] },
      ],
      volumes: [{ name: "v", hostPath: {} }],
    };
    expect(lines(spec)).toEqual([]);
  });
});

test("linux: windowsOptions are forbidden, even empty", () => {
  const securityContext = { windowsOptions: {} };
  const spec = {
    ...LINUX,
    securityContext,
    ...Object.fromEntries(CONTAINER_LISTS.map((list) => [list, [{ name: list, securityContext }]])),
  };
  const text = `Forbidden: ${LINUX_DETAIL}`;
  expect(lines(spec)).toEqual([
    `spec.securityContext.windowsOptions: ${text}`,
    ...CONTAINER_LISTS.map((list) => `spec.${list}[0].securityContext.windowsOptions: ${text}`),
  ]);
});

test.each(BUILT_IN_WORKLOADS.map((workload) => [workload.kind, fieldPath(specPath(workload))]))(
  "%s: errors are below %s",
  (_kind, prefix) => {
    expect(lines({ ...WINDOWS, hostPID: true }, prefix)).toEqual([windows(`${prefix}.hostPID`)]);
    expect(lines({ os: {} }, prefix)).toEqual([`${prefix}.os.name: Required value`]);
  },
);

describe("stop signals", () => {
  const ending = (stopSignal: string) => [{ name: "c", lifecycle: { stopSignal } }];
  const field = "spec.containers[0].lifecycle.stopSignal";

  test("need an OS", () => {
    expect(lines({ containers: ending("SIGTERM") })).toEqual([
      `${field}: Forbidden: may not be set for containers with empty \`spec.os.name\``,
    ]);
    // Of this one the missing name is the error.
    expect(lines({ os: {}, containers: ending("SIGTERM") })).toEqual(["spec.os.name: Required value"]);
  });

  test("of Windows are two, of Linux 65", () => {
    expect(lines({ ...WINDOWS, containers: ending("SIGKILL") })).toEqual([]);
    expect(lines({ ...WINDOWS, containers: ending("SIGHUP") })).toEqual([
      `${field}: Unsupported value: "SIGHUP": supported values: "SIGKILL", "SIGTERM"`,
    ]);
    expect(lines({ ...LINUX, containers: ending("SIGRTMIN+15") })).toEqual([]);
    const [error] = validatePodOS({ ...LINUX, containers: ending("SIGNOT") });
    expect(error?.detail.match(/"SIG/g)).toHaveLength(65);
  });

  test("main containers come first; init containers that end, and ephemeral ones, have none", () => {
    const spec = {
      ...WINDOWS,
      initContainers: [...ending("SIGHUP"), { ...ending("SIGHUP")[0], restartPolicy: "Always" }],
      containers: ending("SIGHUP"),
      ephemeralContainers: ending("SIGHUP"),
    };
    expect(validatePodOS(spec).map((error) => error.field)).toEqual([
      field,
      "spec.initContainers[1].lifecycle.stopSignal",
    ]);
  });
});

describe("updates", () => {
  const immutable = "spec";
  const fields = (before: JsonObject, after: JsonObject) =>
    validatePodOSUpdate(before, after).map((error) => error.field);

  test("the OS of a pod is immutable", () => {
    expect(fields(LINUX, LINUX)).toEqual([]);
    expect(fields({}, { os: null })).toEqual([]);
    expect(fields({}, WINDOWS)).toEqual([immutable]);
    expect(fields(WINDOWS, {})).toEqual([immutable]);
    expect(validatePodOSUpdate(WINDOWS, LINUX)[0]?.detail).toMatch(
      /^pod updates may not change fields other than /,
    );
  });

  test("the new spec is validated as well", () => {
    expect(fields(LINUX, { ...WINDOWS, securityContext: { seLinuxOptions: {} } })).toEqual([
      "spec.securityContext.seLinuxOptions",
      immutable,
    ]);
    expect(fields({}, { os: { name: "dummy" } })).toEqual(["spec.os", immutable]);
  });

  test("an added ephemeral container is validated with the whole pod", () => {
    const added = {
      ...WINDOWS,
      ephemeralContainers: [{ name: "d", securityContext: { privileged: false } }],
    };
    expect(fields(WINDOWS, added)).toEqual(["spec.ephemeralContainers[0].securityContext.privileged"]);
  });

  test("a Windows pod cannot be resized", () => {
    expect(validatePodOSResize(LINUX)).toEqual([]);
    expect(validatePodOSResize(undefined)).toEqual([]);
    expect(validatePodOSResize(WINDOWS)).toMatchObject([
      { field: "[]", type: "Forbidden", message: "Forbidden: windows pods cannot be resized" },
    ]);
  });
});

test("no shape of a spec throws", () => {
  const values: Json[] = [null, "x", 5, [], [null], ["x"], {}, JSON.parse('{"__proto__":{}}')];
  for (const value of values) {
    validatePodOS(value as JsonObject);
    validatePodOSUpdate(value as JsonObject, value as JsonObject);
    for (const name of ["linux", "windows"])
      for (const field of ["containers", "initContainers", "securityContext", "os"])
        validatePodOS({ os: { name }, [field]: value });
  }
  const many = Array.from({ length: 10_000 }, () => ({
    securityContext: { privileged: true, runAsUser: 1 },
  }));
  expect(validatePodOS({ ...WINDOWS, containers: many })).toHaveLength(20_000);
});

test("reads no further container once it has the requested number of errors", () => {
  const containers = Array.from({ length: 10_000 }, () => ({
    securityContext: { privileged: true },
    lifecycle: { stopSignal: "x" },
  }));
  for (const name of ["linux", "windows"]) {
    const counted = new CountedReads();
    expect(validatePodOS(counted.of({ os: { name }, containers }), "spec", 1)).toHaveLength(1);
    expect(counted.reads).toBeLessThan(100);
  }
});
