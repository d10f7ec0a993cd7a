/**
 * Exceptions of Pod Security as policies of the API server itself. Its plugin PodSecurity has levels and no exceptions, and no policy can
 * allow what it refuses. So the namespaces of an exception are exempt from the plugin, and a ValidatingAdmissionPolicy judges their new
 * pods by the same labels, with everything that exceptions waive there.
 */
import type { JsonObject } from "../../core/json.ts";
import { admissionPolicy, celString, celValue } from "../../core/kubernetes/cel.ts";
import type { CompiledSelector } from "../../core/kubernetes/selectors/label-selector.ts";
import {
  type CompileContext,
  type CompiledPolicy,
  notCompiled,
  withinBudget,
} from "../../core/module/compile.ts";
import { defaultPolicy } from "./security/admission/namespace-policy.ts";
import type { CheckInCel, Variant } from "./security/check.ts";
import { CHECKS, NEWEST_MINOR } from "./security/checks.ts";
import { type Exception, isOfContainers, LONGEST_MS } from "./security/exceptions/exceptions.ts";
import { LABEL_PREFIX, type LevelVersion } from "./security/policy.ts";
import { IS_WINDOWS, WINDOWS_CHECKS } from "./security/windows-user.ts";
import { type PodOSSettings, settingsOf } from "./settings.ts";

type Settings = PodOSSettings["podSecurity"];

export function compile({
  policies,
  installation,
  view,
  now,
}: CompileContext<Exception>): readonly CompiledPolicy[] {
  const settings = settingsOf(installation).podSecurity;
  const { effective } = view.serverVersion ?? {};
  const newest = Math.min(NEWEST_MINOR, effective?.major === 1 ? effective.minor : NEWEST_MINOR);
  const exempt = [installation.namespace, ...(settings.configuration?.exemptions?.namespaces ?? [])];
  const active = policies.filter(({ expires }) => now < expires);
  return policies.map((exception) => {
    const { ref, expires } = exception;
    if (settings.mode !== "Replace")
      return notCompiled(ref, "the exception", "it counts only with podSecurity.mode: Replace");
    if (now >= expires)
      return notCompiled(ref, "the exception", `it expired at ${new Date(expires).toISOString()}`);
    const namespaces = [...exception.namespaces].filter((name) => !exempt.includes(name)).sort();
    if (namespaces.length === 0)
      return notCompiled(ref, "the exception", "no pod of its namespaces is judged");
    const beside = active.filter((one) => namespaces.some((name) => one.namespaces.has(name)));
    const spec = specOf(namespaces, beside, settings, newest);
    return withinBudget({
      policy: ref,
      cost: costOf(beside),
      objects: admissionPolicy("ValidatingAdmissionPolicy", `usher-pod-security.${ref.name}`, spec, {
        validationActions: ["Deny"],
      }),
      leftOut: [
        {
          what: "the plugin PodSecurity",
          why: `its configuration must have ${namespaces.join(", ")} in exemptions.namespaces, or it refuses what is waived`,
        },
        { what: "audit and warn", why: "only the level that a namespace enforces is judged" },
        { what: "pods that exist", why: "ephemeral containers and new images are not judged" },
      ],
    });
  });
}

function specOf(
  namespaces: readonly string[],
  exceptions: readonly Exception[],
  { configuration, windowsChecks }: Settings,
  newest: number,
): JsonObject {
  const { usernames, runtimeClasses } = configuration?.exemptions ?? {};
  return {
    failurePolicy: "Fail",
    matchConstraints: {
      resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
      namespaceSelector: {
        matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "In", values: [...namespaces] }],
      },
    },
    matchConditions: [
      {
        name: "not-exempt",
        expression: `!(request.userInfo.username in ${celValue([...(usernames ?? [])])}) && !(object.spec.?runtimeClassName.orValue("") in ${celValue([...(runtimeClasses ?? [])])})`,
      },
    ],
    variables: [
      ...levelVariables(defaultPolicy(configuration).enforce, newest),
      { name: "containers", expression: "object.spec.?initContainers.orValue([]) + object.spec.containers" },
      { name: "labels", expression: "object.metadata.?labels.orValue({})" },
      { name: "account", expression: 'object.spec.?serviceAccountName.orValue("default")' },
      // The API server writes the time of the request into a new object before it validates it.
      { name: "now", expression: "timestamp(object.metadata.creationTimestamp)" },
      ...exceptions.map((one, i) => ({ name: nameOf(i), expression: inForce(one) })),
    ],
    validations: [
      ...CHECKS.map((check) => ({ id: check.id, expression: judged(check, exceptions, newest) })),
      ...(windowsChecks
        ? WINDOWS_CHECKS.map(({ id, cel }) => ({
            id,
            expression: `variables.level != "restricted" || !(${IS_WINDOWS}) || ${met(id, cel, exceptions)}`,
          }))
        : []),
    ].map(({ id, expression }) => ({
      expression,
      reason: "Forbidden",
      message: `the pod violates check ${id} of the Pod Security level that its namespace enforces`,
    })),
  };
}

const nameOf = (i: number) => `exception${i}`;

/** As `podSecurityPolicyOf` reads the labels of a namespace. */
function levelVariables({ level, version }: LevelVersion, newest: number) {
  const label = (name: string, otherwise: string) =>
    `namespaceObject.metadata.?labels[?"${LABEL_PREFIX}${name}"].orValue(${celString(otherwise)})`;
  return [
    { name: "givenLevel", expression: label("enforce", level) },
    {
      name: "level",
      expression: 'variables.givenLevel in ["privileged", "baseline"] ? variables.givenLevel : "restricted"',
    },
    { name: "version", expression: label("enforce-version", version) },
    {
      name: "minor",
      expression: `variables.version.matches("^v1[.](0|[1-9][0-9]{0,8})$") && int(variables.version.substring(3)) < ${newest} ? int(variables.version.substring(3)) : ${newest}`,
    },
  ];
}

/** Whether an exception is for the pod, now; see `whyNotInForce`. */
function inForce({ namespaces, serviceAccounts, pods, expires }: Exception): string {
  const end = `timestamp(${celString(new Date(expires).toISOString())})`;
  return [
    `request.namespace in ${celValue([...namespaces])}`,
    `variables.now < ${end}`,
    `${end} - variables.now <= duration("${LONGEST_MS / 1_000}s")`,
    ...(serviceAccounts === undefined ? [] : [`variables.account in ${celValue([...serviceAccounts])}`]),
    ...(pods === undefined ? [] : selected(pods)),
  ].join(" && ");
}

function selected(selector: CompiledSelector): string[] {
  if (selector.kind !== "requirements") return selector.kind === "nothing" ? ["false"] : [];
  return selector.requirements.map(({ key, operator, values }) => {
    const has = `${celString(key)} in variables.labels`;
    const within = `${has} && variables.labels[${celString(key)}] in ${celValue([...values].sort())}`;
    const ways = { In: `(${within})`, NotIn: `!(${within})`, Exists: has, DoesNotExist: `!(${has})` };
    return ways[operator];
  });
}

/** A check at the version of the namespace, where its level has it; see `activeChecks`. */
function judged(
  { id, level, variants }: (typeof CHECKS)[number],
  exceptions: readonly Exception[],
  newest: number,
): string {
  const overriding = CHECKS.find(({ overrides }) => overrides?.includes(id));
  const replaced = overriding?.variants[0]?.since;
  const skipped =
    level === "restricted"
      ? 'variables.level != "restricted"'
      : `variables.level == "privileged"${replaced === undefined ? "" : ` || (variables.level == "restricted" && variables.minor >= ${replaced})`}`;
  const byVersion = variants
    .filter(({ since }) => since <= newest)
    .map(({ since, skips, cel }) => [since, `${SKIPS[skips ?? "none"]}${met(id, cel, exceptions)}`] as const)
    .reduce((older, [since, rule]) => `variables.minor >= ${since} ? (${rule}) : ${older}`, "true");
  return `${skipped} || (${byVersion})`;
}

const SKIPS: Readonly<Record<NonNullable<Variant["skips"]> | "none", string>> = {
  none: "",
  windows: `${IS_WINDOWS} || `,
  userNamespace: "object.spec.?hostUsers.orValue(true) == false || ",
};

/** A rule, but for what exceptions waive; see `waive`. */
function met(id: string, { pod, container }: CheckInCel, exceptions: readonly Exception[]): string {
  const mine = exceptions.flatMap((one, i) => (one.checks.has(id) ? [{ ...one, name: nameOf(i) }] : []));
  const whole = mine.filter((one) => !isOfContainers(one)).map(({ name }) => `variables.${name}`);
  const some = mine
    .filter(isOfContainers)
    .map((one) => `(${[`variables.${one.name}`, ...covers(one)].join(" && ")})`);
  const rules = [
    ...(pod === undefined ? [] : [`(${pod})`]),
    ...(container === undefined
      ? []
      : [`variables.containers.all(c, ${[...some, `(${container})`].join(" || ")})`]),
  ];
  return [...whole, `(${rules.join(" && ")})`].join(" || ");
}

/** Whether it is for container `c`; see `coversContainer`. */
function covers({ images, containers }: Exception): string[] {
  const begins = (images ?? []).filter((one) => one.endsWith("*"));
  const exact = (images ?? []).filter((one) => !one.endsWith("*"));
  const image = [
    `c.?image.orValue("") in ${celValue(exact)}`,
    ...begins.map((one) => `c.?image.orValue("").startsWith(${celString(one.slice(0, -1))})`),
  ];
  return [
    ...(containers === undefined ? [] : [`c.name in ${celValue([...containers])}`]),
    ...(images === undefined ? [] : [`(${image.join(" || ")})`]),
  ];
}

/** Of the most expensive check for a pod of twenty containers: each is compared with each image and name. */
function costOf(exceptions: readonly Exception[]): number {
  const compared = exceptions.reduce(
    (sum, { images = [], containers = new Set() }) => sum + 2 + images.length + containers.size,
    0,
  );
  return 20 * (150 + 15 * compared);
}
