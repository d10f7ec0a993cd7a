import fc from "fast-check";
import { applyPatch, type Operation } from "rfc6902";
import { describe, expect, test } from "vitest";
import { fixturesOf, minimalPod } from "../../../../test/builders/pod-security-fixtures.ts";
import { CountedReads } from "../../../../test/growth/counted-reads.ts";
import { copyOf, type Json, type JsonObject } from "../../../core/json.ts";
import { MOST_LISTED } from "../go-text.ts";
import { ACTIVE_CHECKS, CHECKS } from "./checks.ts";
import { evaluatePodSecurity } from "./evaluate.ts";

const LATEST = { level: "restricted", version: "latest" };
const at = (level: string, minor: number) => ({ level, version: `v1.${minor}` });
const container = (name: string, securityContext?: JsonObject): JsonObject => ({
  name,
  ...(securityContext === undefined ? {} : { securityContext }),
});
const detail = (policy: { level: string; version: string }, spec: JsonObject, annotations: JsonObject = {}) =>
  evaluatePodSecurity(policy, { annotations }, spec).detail;

test("the plainest pod at restricted, in the API server's wording", () => {
  const result = evaluatePodSecurity(LATEST, {}, { containers: [{ name: "c" }] }, { fixes: true });
  expect(result).toMatchObject({ allowed: false, policy: "restricted:latest", evaluatedVersion: "v1.37" });
  expect(result.detail).toBe(
    'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  );
  expect(result.reason).toBe(
    "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile",
  );
  expect(result.violations[0]?.causes).toEqual([
    { field: "spec.containers[0].securityContext.allowPrivilegeEscalation", message: "must be false" },
  ]);
});

/** Messages that fixtures with one container do not show: plurals, orders, quotes. */
const TEXTS: readonly [string, JsonObject, string, JsonObject?][] = [
  [
    "hostPorts",
    { containers: [{ name: "a", ports: [{ hostPort: 9 }, { hostPort: 10 }] }] },
    'hostPort (container "a" uses hostPorts 10, 9)',
  ],
  [
    "hostPorts of two",
    {
      containers: [{ name: "a", ports: [{ hostPort: 9 }] }],
      initContainers: [{ name: "b", ports: [{ hostPort: 9 }] }],
    },
    'hostPort (containers "b", "a" use hostPort 9)',
  ],
  [
    "hostNamespaces",
    { hostIPC: true, hostNetwork: true, hostPID: true },
    "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
  ],
  [
    "hostPathVolumes",
    {
      volumes: [
        { name: "z", hostPath: {} },
        { name: "a", hostPath: {} },
      ],
    },
    'hostPath volumes (volumes "z", "a")',
  ],
  [
    "probes: sorted names",
    {
      containers: ["z", "a"].map((name) => ({
        name,
        livenessProbe: { httpGet: { host: name } },
        lifecycle: { preStop: { tcpSocket: { host: "h" } } },
      })),
    },
    'probe or lifecycle host (containers "a", "z" use probe or lifecycle hosts "a", "h", "z")',
  ],
  [
    "probes: one name twice",
    {
      containers: [{ name: "a", livenessProbe: { httpGet: { host: "h" } } }],
      initContainers: [{ name: "a", startupProbe: { tcpSocket: { host: "h" } } }],
    },
    'probe or lifecycle host (container "a" uses probe or lifecycle host "h")',
  ],
  [
    "seLinuxOptions",
    {
      securityContext: { seLinuxOptions: { type: "z", user: "u" } },
      containers: [container("a", { seLinuxOptions: { type: "b", role: "r" } })],
    },
    'seLinuxOptions (pod and container "a" set forbidden securityContext.seLinuxOptions: types "b", "z"; user may not be set; role may not be set)',
  ],
  [
    "appArmor: empty type",
    { securityContext: { appArmorProfile: {} } },
    'forbidden AppArmor profile (pod must not set AppArmor profile type to "")',
  ],
  [
    "appArmor: field and annotations",
    { containers: [container("a", { appArmorProfile: { type: "Unconfined" } })] },
    'forbidden AppArmor profiles (container "a" and annotations must not set AppArmor profile type to "Unconfined", "container.apparmor.security.beta.kubernetes.io/a="q\\"\\x01\\n\\u200b"", "container.apparmor.security.beta.kubernetes.io/b="unconfined"")',
    {
      "container.apparmor.security.beta.kubernetes.io/b": "unconfined",
      "container.apparmor.security.beta.kubernetes.io/a": 'q"\u0001\n\u200b',
    },
  ],
  [
    "sysctls: duplicates stay",
    { securityContext: { sysctls: [{ name: "b" }, { name: "a" }, { name: "b" }] } },
    "forbidden sysctls (b, a, b)",
  ],
  [
    "capabilities beyond U+FFFF",
    { containers: [container("a", { capabilities: { add: ["\u{1f600}", "\uffee", "B", "B"] } })] },
    'non-default capabilities (container "a" must not include "B", "\uffee", "\u{1f600}" in securityContext.capabilities.add)',
  ],
  [
    "procMount",
    { containers: [container("b", { procMount: "Unmasked" }), container("a", { procMount: "" })] },
    'procMount (containers "b", "a" must not set securityContext.procMount to "", "Unmasked")',
  ],
];

test.each(TEXTS)("%s", (_name, spec, text, annotations) => {
  expect(detail(at("baseline", 37), spec, annotations)).toBe(text);
});

test("seccomp annotations before v1.19", () => {
  const annotations = {
    "seccomp.security.alpha.kubernetes.io/pod": "",
    "container.seccomp.security.alpha.kubernetes.io/c": 'x\t"',
    "container.seccomp.security.alpha.kubernetes.io/other": "unconfined",
  };
  const spec = { containers: [{ name: "c" }] };
  expect(detail(at("baseline", 18), spec, annotations)).toBe(
    'seccompProfile (forbidden annotations container.seccomp.security.alpha.kubernetes.io/c="x\\t\\"", seccomp.security.alpha.kubernetes.io/pod="")',
  );
  expect(detail(at("baseline", 19), spec, annotations)).toBe("");
});

test("explicit values win over absent ones, in one fix", () => {
  const spec = { containers: [container("a", { runAsNonRoot: false }), container("b")] };
  expect(detail(at("restricted", 0), spec)).toBe(
    'runAsNonRoot != true (container "a" must not set securityContext.runAsNonRoot=false)',
  );
});

describe("versions", () => {
  const newSysctl = { securityContext: { sysctls: [{ name: "net.ipv4.tcp_notsent_lowat", value: "1" }] } };
  test.each<[string, JsonObject | undefined, string, boolean]>([
    ["v1.36", undefined, "v1.36", false],
    ["v1.37", undefined, "v1.37", true],
    ["v1.38", undefined, "v1.37", true],
    ["latest", undefined, "v1.37", true],
    ["v1.9223372036854775807", undefined, "v1.37", true],
    ["latest", { newest: 36 }, "v1.36", false],
    ["latest", { newest: "v1.36" }, "v1.36", false],
    ["v1.9999", { newest: 36 }, "v1.36", false],
    ["v1.30", { newest: 36 }, "v1.30", false],
    ["latest", { newest: 99 }, "v1.37", true],
  ])("%s with %j is evaluated at %s", (version, options, evaluatedVersion, allowed) => {
    const result = evaluatePodSecurity({ level: "baseline", version }, {}, newSysctl, options);
    expect(result).toMatchObject({ evaluatedVersion, allowed, policy: `baseline:${version}` });
  });

  test.each([
    "",
    "v1",
    "1.36",
    "v2.0",
    "v1.01",
    "Latest",
    "v1.9223372036854775808",
    "v1.1\n",
    `v1.${"9".repeat(99)}`,
  ])("%j is a RangeError", (version) => {
    expect(() => evaluatePodSecurity({ level: "baseline", version }, {}, {})).toThrow(RangeError);
  });

  test.each(["", "Restricted", "__proto__", "constructor"])("level %j is a RangeError", (level) => {
    expect(() => evaluatePodSecurity({ level, version: "latest" }, {}, {})).toThrow(RangeError);
  });

  test("privileged evaluates nothing", () => {
    expect(
      evaluatePodSecurity({ level: "privileged", version: "v1.5" }, {}, { hostPID: true }),
    ).toMatchObject({
      allowed: true,
      violations: [],
    });
  });
});

test("the checks of each level at each version", () => {
  const counts = (level: "baseline" | "restricted") => ACTIVE_CHECKS[level].map((checks) => checks.length);
  expect(counts("baseline")).toEqual([...Array(34).fill(11), ...Array(4).fill(12)]);
  expect(counts("restricted")).toEqual([
    ...Array(8).fill(12),
    ...Array(15).fill(13),
    ...Array(11).fill(14),
    ...Array(4).fill(15),
  ]);
  const ids = CHECKS.map(({ id, level }) => `${level} ${id}`);
  expect(ids).toEqual(ids.toSorted());
  for (const { level, overrides = [] } of CHECKS)
    for (const other of overrides)
      expect([level, CHECKS.find(({ id }) => id === other)?.level]).toEqual(["restricted", "baseline"]);
});

describe("a Windows pod", () => {
  const valid = {
    os: { name: "windows" },
    securityContext: { runAsNonRoot: true },
    containers: [{ name: "c" }],
  };
  const claimed = {
    ...valid,
    containers: [container("c", { capabilities: { add: ["SYS_ADMIN"] } })],
  };

  test("needs only runAsNonRoot from v1.25", () => {
    expect(detail(LATEST, valid)).toBe("");
    expect(detail(at("restricted", 24), valid)).not.toBe("");
  });

  test("is evaluated like any other if its OS is not valid, and no fix adds Linux fields", () => {
    const { violations } = evaluatePodSecurity(LATEST, {}, claimed, { fixes: true });
    expect(violations.map(({ check, fix }) => [check, fix])).toEqual([
      ["allowPrivilegeEscalation", undefined],
      ["capabilities_restricted", undefined],
      ["seccompProfile_restricted", undefined],
    ]);
    expect(evaluatePodSecurity(LATEST, {}, claimed, { osSkipTrusted: true }).allowed).toBe(true);
  });
});

/** Values that no JSON schema would accept. */
const HOSTILE: readonly Json[] = [
  null,
  "x",
  5,
  [],
  [null],
  ["x"],
  {},
  { name: {} },
  JSON.parse('{"__proto__":{"name":"c"}}'),
];

test("never throws for any shape of a pod, and malformed values satisfy no requirement", () => {
  const fields = [
    "containers",
    "initContainers",
    "ephemeralContainers",
    "volumes",
    "securityContext",
    "os",
    "hostUsers",
  ];
  for (const field of fields)
    for (const value of HOSTILE)
      for (const level of ["baseline", "restricted"])
        evaluatePodSecurity({ level, version: "latest" }, {}, { [field]: value });
  for (const value of HOSTILE) {
    evaluatePodSecurity(LATEST, value as JsonObject, value as JsonObject);
    evaluatePodSecurity(
      LATEST,
      { annotations: value },
      {
        containers: [
          { name: value, securityContext: value, ports: value, lifecycle: value, livenessProbe: value },
        ],
      },
    );
  }
  expect(evaluatePodSecurity(LATEST, {}, { containers: "x" }).allowed).toBe(false);
  expect(
    evaluatePodSecurity(LATEST, {}, { containers: "x" }, { fixes: true }).violations[0]?.fix,
  ).toBeUndefined();
});

test("ten thousand bad containers are read a number of times that grows with them, not with their square", () => {
  const bad = (count: number): JsonObject => ({
    containers: Array.from({ length: count }, (_, i) => ({
      name: `c${i}`,
      ports: [{ hostPort: i }],
      securityContext: {
        privileged: true,
        capabilities: { add: [`X${i}`] },
        seLinuxOptions: { type: `t${i}` },
        runAsUser: 0,
      },
    })),
  });
  const readsOf = (count: number): number => {
    const counted = new CountedReads();
    const { violations } = evaluatePodSecurity(LATEST, {}, counted.of(bad(count)));
    expect(violations.flatMap(({ causes }) => causes).length).toBeGreaterThan(5 * count);
    return counted.reads;
  };
  expect(readsOf(10_000)).toBeLessThanOrEqual(readsOf(1_000) * 10);
});

const bits = fc.constantFrom<Json>(true, false, null);
const context = fc.record(
  {
    privileged: bits,
    allowPrivilegeEscalation: bits,
    runAsNonRoot: bits,
    runAsUser: fc.constantFrom<Json>(0, 1, null),
    procMount: fc.constantFrom<Json>("Default", "Unmasked", null),
    capabilities: fc.constantFrom<Json>(
      null,
      {},
      { add: ["X", "CHOWN", "Y"] },
      { drop: ["KILL"] },
      { drop: ["ALL"] },
    ),
    seccompProfile: fc.constantFrom<Json>(null, { type: "Unconfined" }, { type: "RuntimeDefault" }, {}),
    appArmorProfile: fc.constantFrom<Json>(null, { type: "Unconfined" }, { type: "Localhost" }),
    seLinuxOptions: fc.constantFrom<Json>(null, { type: "x", user: "u" }, { role: "r" }, {}),
    windowsOptions: fc.constantFrom<Json>(null, { hostProcess: true }, {}),
    sysctls: fc.constantFrom<Json>(null, [{ name: "a" }, { name: "kernel.shm_rmid_forced" }, { name: "b" }]),
  },
  { requiredKeys: [] },
);
const containers = fc.array(
  fc.record(
    {
      name: fc.constantFrom("a", "b", "c"),
      securityContext: fc.oneof(context, fc.constant(null)),
      ports: fc.constantFrom<Json>([], [{ hostPort: 1 }, { hostPort: 0 }, { hostPort: 2 }]),
      livenessProbe: fc.constantFrom<Json>({ httpGet: { host: "h" } }, {}),
    },
    { requiredKeys: ["name"] },
  ),
  { maxLength: 3 },
);
const pods = fc.record(
  {
    securityContext: fc.oneof(context, fc.constant(null)),
    initContainers: containers,
    containers,
    ephemeralContainers: containers,
    hostPID: bits,
    hostUsers: bits,
    volumes: fc.constantFrom<Json>([], [{ name: "v", hostPath: {} }]),
  },
  { requiredKeys: ["containers"] },
);
const annotations = fc.dictionary(
  fc.constantFrom(
    "container.apparmor.security.beta.kubernetes.io/a",
    "seccomp.security.alpha.kubernetes.io/pod",
    "container.seccomp.security.alpha.kubernetes.io/a",
    "__proto__",
  ),
  fc.constantFrom("unconfined", "runtime/default"),
);

test("with all fixes applied, in either order, only checks without a fix are left", () => {
  fc.assert(
    fc.property(
      pods,
      annotations,
      fc.integer({ min: 0, max: 37 }),
      fc.boolean(),
      (spec, notes, minor, reverse) => {
        const pod = copyOf({ metadata: { annotations: notes }, spec } as Json) as {
          metadata: JsonObject;
          spec: JsonObject;
        };
        const { violations } = evaluatePodSecurity(at("restricted", minor), pod.metadata, pod.spec, {
          fixes: true,
        });
        const fixes = violations.flatMap(({ fix }) => (fix === undefined ? [] : [fix]));
        for (const fix of reverse ? fixes.toReversed() : fixes)
          expect(
            applyPatch(pod, copyOf(fix as unknown as Json) as unknown as Operation[]).filter(
              (one) => one !== null,
            ),
          ).toEqual([]);
        const left = evaluatePodSecurity(at("restricted", minor), pod.metadata, pod.spec).violations.map(
          ({ check }) => check,
        );
        expect(left).toEqual(violations.filter(({ fix }) => fix === undefined).map(({ check }) => check));
        expect(left.filter((id) => id !== "restrictedVolumes")).toEqual([]);
      },
    ),
    { numRuns: 400 },
  );
});

test("baseline allows what restricted allows", () => {
  fc.assert(
    fc.property(pods, fc.integer({ min: 0, max: 37 }), (spec, minor) => {
      const pod = spec as JsonObject;
      if (evaluatePodSecurity(at("restricted", minor), {}, pod).allowed)
        expect(evaluatePodSecurity(at("baseline", minor), {}, pod).allowed).toBe(true);
    }),
  );
  for (const check of CHECKS)
    for (const { minor, metadata, spec } of fixturesOf(check, 37))
      if (evaluatePodSecurity(at("restricted", minor), metadata, spec).allowed)
        expect(evaluatePodSecurity(at("baseline", minor), metadata, spec).allowed).toBe(true);
});

test("evaluating changes nothing in the pod", () => {
  const spec = minimalPod("baseline", 37, "linux", ["containers"]);
  const before = JSON.stringify(spec);
  evaluatePodSecurity(LATEST, {}, spec);
  expect(JSON.stringify(spec)).toBe(before);
});

describe("a large pod", () => {
  const names = Array.from({ length: 20_000 }, (_, i) => `c${i}`);
  const large = {
    containers: names.map((name) => ({
      name,
      ports: [{ hostPort: 1 }],
      livenessProbe: { httpGet: { host: name } },
      securityContext: {
        privileged: true,
        capabilities: { add: [name] },
        seLinuxOptions: { type: name, user: "u", role: "r" },
        appArmorProfile: { type: name },
        seccompProfile: { type: name },
        procMount: name,
        runAsUser: 0,
        runAsNonRoot: false,
        windowsOptions: { hostProcess: true },
      },
    })),
    volumes: names.map((name) => ({ name, hostPath: { path: "/" } })),
    securityContext: { sysctls: names.map((name) => ({ name, value: "1" })) },
  };

  test.each(["baseline", "restricted"])("for %s: no message lists more elements than fit", (level) => {
    const { violations } = evaluatePodSecurity({ level, version: "latest" }, {}, large, {
      mostCauses: 4,
      fixes: true,
    });
    expect(violations.length).toBeGreaterThan(10);
    for (const one of violations) {
      // Capabilities have two lists of containers and one of names.
      expect(one.detail.split(", ").length).toBeLessThanOrEqual(3 * MOST_LISTED);
      // A SELinux profile may be wrong in three fields.
      expect(one.causes.length).toBeLessThanOrEqual(12);
      expect(one.fix).toBeUndefined();
    }
  });

  test("names its first containers in order, as in the whole text", () => {
    const { detail } = evaluatePodSecurity({ level: "baseline", version: "latest" }, {}, large);
    expect(detail).toContain(
      `hostPort (containers "${names.slice(0, MOST_LISTED).join('", "')}" use hostPort 1)`,
    );
  });

  test("without a limit has all causes and a whole fix", () => {
    const { violations } = evaluatePodSecurity({ level: "baseline", version: "latest" }, {}, large, {
      fixes: true,
    });
    const ports = violations.find(({ check }) => check === "hostPorts");
    expect([ports?.causes.length, ports?.fix?.length]).toEqual([20_000, 20_000]);
  });

  test("of another check is not read if one is requested", () => {
    const { violations } = evaluatePodSecurity(LATEST, {}, large, { check: "privileged" });
    expect(violations.map(({ check }) => check)).toEqual(["privileged"]);
  });
});
