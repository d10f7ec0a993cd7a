import fc from "fast-check";
import { expect, test } from "vitest";
import { OPERATIONS, type Operation } from "../decision/request.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../installation/installation.ts";
import type { JsonObject } from "../json.ts";
import type { Hook, Rule } from "../module/hook.ts";
import { safeguard } from "../module/safeguard.ts";
import { webhookConfigurations } from "./webhooks.ts";

/**
 * Usher can't lock its cluster, for any hooks of modules. The API server's behaviour is modelled here from its own
 * rules, on the objects that it would get, without the code under test.
 */

interface Resource {
  readonly group: string;
  readonly resource: string;
  readonly scope: "Cluster" | "Namespaced";
  readonly vital: boolean;
}

function resource(name: string, scope: Resource["scope"], vital = false): Resource {
  const dot = name.indexOf(".");
  return dot < 0
    ? { group: "", resource: name, scope, vital }
    : { group: name.slice(dot + 1), resource: name.slice(0, dot), scope, vital };
}

const RESOURCES: readonly Resource[] = [
  resource("nodes", "Cluster", true),
  resource("leases.coordination.k8s.io", "Namespaced", true),
  resource("certificatesigningrequests.certificates.k8s.io", "Cluster", true),
  resource("tokenreviews.authentication.k8s.io", "Cluster", true),
  resource("subjectaccessreviews.authorization.k8s.io", "Cluster", true),
  resource("localsubjectaccessreviews.authorization.k8s.io", "Namespaced", true),
  resource("customresourcedefinitions.apiextensions.k8s.io", "Cluster", true),
  resource("apiservices.apiregistration.k8s.io", "Cluster", true),
  resource("mutatingwebhookconfigurations.admissionregistration.k8s.io", "Cluster", true),
  resource("validatingwebhookconfigurations.admissionregistration.k8s.io", "Cluster", true),
  resource("pods", "Namespaced"),
  resource("namespaces", "Cluster"),
  resource("persistentvolumes", "Cluster"),
  resource("deployments.apps", "Namespaced"),
  resource("nodes.metrics.k8s.io", "Cluster"),
  resource("leases.example.com", "Namespaced"),
];
const SUBRESOURCES = ["", "status", "approval", "proxy"];
const VITAL_NAMESPACES = ["kube-system", "kube-public", "kube-node-lease", "usher-system"];
const NAMESPACES = ["shop", "bank", ...VITAL_NAMESPACES];

interface Request extends Resource {
  readonly sub: string;
  /** For a Namespace its own name; empty for other cluster-scoped objects. */
  readonly namespace: string;
  readonly operation: Operation;
}

const isNamespace = ({ group, resource }: Resource) => group === "" && resource === "namespaces";

const REQUESTS: readonly Request[] = RESOURCES.flatMap((one) =>
  SUBRESOURCES.flatMap((sub) =>
    (one.scope === "Namespaced" || isNamespace(one) ? NAMESPACES : [""]).flatMap((namespace) =>
      OPERATIONS.map((operation) => ({ ...one, sub, namespace, operation })),
    ),
  ),
);

/** How the API server matches one rule. The lists are those of a webhook configuration. */
function ruleMatches(
  {
    groups,
    resources,
    operations,
    scope,
  }: {
    groups: readonly string[];
    resources: readonly string[];
    operations: readonly string[];
    scope: string;
  },
  request: Request,
): boolean {
  const clustered = request.namespace === "" || isNamespace(request);
  if (scope === "Cluster" && !clustered) return false;
  if (scope === "Namespaced" && clustered) return false;
  if (!operations.includes(request.operation)) return false;
  if (!groups.some((group) => group === "*" || group === request.group)) return false;
  return resources.some((pattern) => {
    const [name, sub = ""] = pattern.split("/", 2);
    return (name === "*" || name === request.resource) && (sub === "*" || sub === request.sub);
  });
}

interface Entry {
  readonly name: string;
  readonly failurePolicy: string;
  readonly timeoutSeconds: number;
  readonly clientConfig: { readonly service: { readonly path: string } };
  readonly namespaceSelector: {
    readonly matchExpressions?: readonly {
      readonly key: string;
      readonly operator: string;
      readonly values: readonly string[];
    }[];
  };
  readonly rules: readonly {
    readonly apiGroups: readonly string[];
    readonly apiVersions: readonly string[];
    readonly resources: readonly string[];
    readonly operations: readonly string[];
    readonly scope: string;
  }[];
}

/** How the API server decides whether to call an entry. Things without a namespace are never exempt by a selector. */
function entryMatches(entry: Entry, request: Request): boolean {
  const labels: Record<string, string> = { "kubernetes.io/metadata.name": request.namespace };
  for (const { key, operator, values } of entry.namespaceSelector.matchExpressions ?? []) {
    if (request.namespace === "") break;
    if (values.includes(labels[key] ?? "") !== (operator === "In")) return false;
  }
  return entry.rules.some(({ apiGroups: groups, ...rule }) => ruleMatches({ groups, ...rule }, request));
}

/** The declared rules of a hook, before the safeguard. */
function hookAsks(hook: Hook, request: Request): boolean {
  const { namespaces } = hook;
  if (namespaces !== undefined && request.namespace !== "") {
    const named = ("except" in namespaces ? namespaces.except : namespaces.only).includes(request.namespace);
    if (named === "except" in namespaces) return false;
  }
  return hook.rules.some((rule) => ruleAsks(rule, request));
}

function ruleAsks(rule: Rule, request: Request): boolean {
  return rule.versions.length > 0 && ruleMatches({ ...rule, scope: rule.scope ?? "*" }, request);
}

const namespaceLists = fc.array(fc.constantFrom(...NAMESPACES), { maxLength: 4 });
const rules: fc.Arbitrary<Rule> = fc
  .record({
    groups: fc.array(fc.constantFrom("*", ...new Set(RESOURCES.map(({ group }) => group))), { maxLength: 3 }),
    versions: fc.array(fc.constantFrom("*", "v1", "v1beta1"), { maxLength: 2 }),
    resources: fc.array(
      fc
        .tuple(
          fc.constantFrom("*", "*", ...new Set(RESOURCES.map(({ resource }) => resource))),
          fc.constantFrom("", "", "/", "/*", ...SUBRESOURCES.slice(1).map((sub) => `/${sub}`)),
        )
        .map((parts) => parts.join("")),
      { maxLength: 4 },
    ),
    operations: fc.subarray([...OPERATIONS]),
    scope: fc.constantFrom(undefined, "Cluster" as const, "Namespaced" as const),
  })
  .map(({ scope, ...rule }) => (scope === undefined ? rule : { ...rule, scope }));

const hooks: fc.Arbitrary<Hook[]> = fc.uniqueArray(
  fc
    .record({
      name: fc.constantFrom(
        "a",
        "b",
        "a-b",
        "a-open",
        "a-opened",
        "b-open",
        "c".repeat(63),
        "d".repeat(63),
        "e".repeat(63),
        "f".repeat(63),
      ),
      phase: fc.constantFrom("mutate" as const, "validate" as const),
      rules: fc.array(rules, { maxLength: 3 }),
      failure: fc.constantFrom("closed" as const, "closed" as const, "open" as const),
      tooLarge: fc.constantFrom("deny" as const, "allow" as const),
      timeoutSeconds: fc.constantFrom(5, 5, 0, 31, 2.5),
      openShadow: fc.boolean(),
      namespaces: fc.oneof(
        fc.constant(undefined),
        namespaceLists.map((except) => ({ except })),
        namespaceLists.map((only) => ({ only })),
      ),
    })
    .map(
      ({ namespaces, ...rest }): Hook => ({
        module: rest.name,
        sideEffects: "None",
        ...rest,
        ...(namespaces === undefined ? {} : { namespaces }),
      }),
    ),
  { selector: ({ name }) => name, maxLength: 6 },
);

const installations: fc.Arbitrary<Installation> = fc
  .subarray(VITAL_NAMESPACES)
  .map((opened) => ({ ...DEFAULT_INSTALLATION, opened }));

const OPTIONS = { endpoint: { service: { name: "usher", namespace: "usher-system", port: 443 } } };

/** As the API server gets them: through JSON. */
function entriesOf(configuration: JsonObject): Entry[] {
  return (JSON.parse(JSON.stringify(configuration)) as { webhooks: Entry[] }).webhooks;
}

function registered(
  given: readonly Hook[],
  installation: Installation,
): Record<"mutate" | "validate", Entry[]> {
  const { mutating, validating } = webhookConfigurations(given, installation, OPTIONS);
  return { mutate: entriesOf(mutating), validate: entriesOf(validating) };
}

test("no fail-closed entry ever matches what a cluster needs to recover", () => {
  fc.assert(
    fc.property(hooks, installations, (given, installation) => {
      const { mutate, validate } = registered(given, installation);
      const closed = [...mutate, ...validate].filter(({ failurePolicy }) => failurePolicy === "Fail");
      for (const request of REQUESTS) {
        if (!request.vital && !VITAL_NAMESPACES.includes(request.namespace)) continue;
        for (const entry of closed)
          if (entryMatches(entry, request)) expect.fail(`${entry.name} stops ${JSON.stringify(request)}`);
      }
    }),
    { numRuns: 300 },
  );
});

test("no hook matches more than it declared", () => {
  fc.assert(
    fc.property(hooks, installations, (given, installation) => {
      for (const [phase, entries] of Object.entries(registered(given, installation))) {
        const mine = given.filter((hook) => hook.phase === phase);
        for (const request of REQUESTS) {
          if (entries.some((entry) => entryMatches(entry, request)))
            expect(
              mine.some((hook) => hookAsks(hook, request)),
              JSON.stringify(request),
            ).toBe(true);
        }
      }
    }),
    { numRuns: 200 },
  );
});

test("nothing is lost except fail-closed hooks in protected namespaces, and harmless rules stay fail-closed", () => {
  fc.assert(
    fc.property(hooks, installations, (given, installation) => {
      const entries = registered(given, installation);
      for (const hook of given) {
        const shut = hook.failure === "closed";
        const { namespaces } = hook;
        const gone = (name: string) => shut && VITAL_NAMESPACES.includes(name);
        // With no namespace left the whole hook is left out, and noted.
        if (namespaces !== undefined && "only" in namespaces && namespaces.only.every(gone)) continue;
        for (const request of REQUESTS) {
          if (!hookAsks(hook, request) || gone(request.namespace)) continue;
          const serving = entries[hook.phase].filter(
            (entry) =>
              entry.clientConfig.service.path
                .split("/")
                .some((step) => step === hook.name || step.startsWith(`${hook.name}-open`)) &&
              entryMatches(entry, request),
          );
          expect(serving.length, JSON.stringify(request)).toBeGreaterThan(0);
          const plainly = hook.rules.some(
            (rule) =>
              ruleAsks(rule, request) &&
              !rule.groups.includes("*") &&
              rule.resources.every((pattern) => !pattern.startsWith("*")),
          );
          if (shut && plainly && !request.vital)
            expect(
              serving.some(({ failurePolicy }) => failurePolicy === "Fail"),
              JSON.stringify(request),
            ).toBe(true);
        }
      }
    }),
    { numRuns: 200 },
  );
});

test("a shadow hook covers everything in the control plane's namespaces, by the same path, and nothing in usher's", () => {
  fc.assert(
    fc.property(hooks, (given) => {
      const entries = registered(given, DEFAULT_INSTALLATION);
      for (const hook of given) {
        if (hook.openShadow !== true || hook.failure === "open") continue;
        for (const request of REQUESTS) {
          if (request.scope === "Cluster" && !isNamespace(request)) continue;
          if (!VITAL_NAMESPACES.includes(request.namespace) || !hookAsks(hook, request)) continue;
          const serving = entries[hook.phase].filter(
            (entry) =>
              entry.clientConfig.service.path.split("/").includes(hook.name) && entryMatches(entry, request),
          );
          const own = request.namespace === DEFAULT_INSTALLATION.namespace;
          if (own) expect(serving, JSON.stringify(request)).toEqual([]);
          else expect(serving.length, JSON.stringify(request)).toBeGreaterThan(0);
        }
      }
    }),
    { numRuns: 200 },
  );
});

test("an opened namespace is still covered", () => {
  fc.assert(
    fc.property(hooks, installations, (given, installation) => {
      const entries = registered(given, installation);
      for (const hook of given) {
        for (const request of REQUESTS) {
          if (request.scope === "Cluster" || !installation.opened.includes(request.namespace)) continue;
          if (!hookAsks(hook, request)) continue;
          expect(entries[hook.phase].some((entry) => entryMatches(entry, request))).toBe(true);
        }
      }
    }),
    { numRuns: 200 },
  );
});

const SEGMENT = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

test("the API server accepts every entry", () => {
  fc.assert(
    fc.property(hooks, installations, (given, installation) => {
      for (const entries of Object.values(registered(given, installation))) {
        expect(new Set(entries.map(({ name }) => name)).size).toBe(entries.length);
        for (const entry of entries) {
          expect(entry.name).toMatch(SEGMENT);
          expect(entry.name.split(".").length).toBeGreaterThanOrEqual(3);
          expect(entry.name.length).toBeLessThanOrEqual(253);
          expect([1, 2, 5, 30]).toContain(entry.timeoutSeconds);
          for (const segment of entry.clientConfig.service.path.split("/").slice(1))
            expect(segment).toMatch(SEGMENT);
          for (const { values } of entry.namespaceSelector.matchExpressions ?? [])
            expect(values).not.toEqual([]);
          expect(entry.rules).not.toEqual([]);
          for (const rule of entry.rules) {
            for (const list of [rule.apiGroups, rule.apiVersions]) {
              expect(list.length).toBeGreaterThan(0);
              if (list.includes("*")) expect(list).toEqual(["*"]);
            }
            expect(rule.operations.length).toBeGreaterThan(0);
            expect(rule.resources.length).toBeGreaterThan(0);
            if (rule.resources.includes("*/*")) expect(rule.resources).toEqual(["*/*"]);
            if (rule.resources.includes("*"))
              expect(rule.resources.filter((one) => !one.includes("/"))).toEqual(["*"]);
            for (const pattern of rule.resources) {
              const [name, sub] = pattern.split("/");
              if (sub === undefined) continue;
              const besides = rule.resources.filter((other) => other !== pattern);
              if (sub === "*") expect(besides.filter((other) => other.startsWith(`${name}/`))).toEqual([]);
              if (name === "*") expect(besides.filter((other) => other.endsWith(`/${sub}`))).toEqual([]);
            }
          }
        }
      }
    }),
    { numRuns: 300 },
  );
});

test("the order of rules and namespaces changes nothing, and safe hooks stay unchanged", () => {
  fc.assert(
    fc.property(hooks, installations, (given, installation) => {
      const turned = given.map((hook) => ({ ...hook, rules: hook.rules.toReversed() }));
      expect(webhookConfigurations(turned, installation, OPTIONS)).toEqual(
        webhookConfigurations(given, installation, OPTIONS),
      );
      const { hooks: safe } = safeguard(given, installation);
      expect(safeguard(safe, installation)).toEqual({ hooks: safe, notes: [] });
      expect(new Set(safe.map(({ name }) => name)).size).toBe(safe.length);
    }),
    { numRuns: 200 },
  );
});
