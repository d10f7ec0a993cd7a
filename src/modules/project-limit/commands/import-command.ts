import { Gates } from "../../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../../core/installation/installation.ts";
import { at, isObject, type Json, type JsonObject } from "../../../core/json.ts";
import type { CommandCode } from "../../../core/module/command.ts";
import { checkObject } from "../../../core/policy/check.ts";
import { configurationsIn } from "../../../core/policy/configuration.ts";
import { refOf } from "../../../core/policy/policy-ref.ts";
import { describeProblem, PROBLEM } from "../../../core/policy/problem.ts";
import { Store } from "../../../core/view/store.ts";
import type { ImportArgs } from "../declaration.ts";
import { projectRequestLimit } from "../kinds.ts";
import { differences } from "../policy/extensions.ts";
import { limitConfiguration } from "../policy/limit-configuration.ts";
import { SINGLETON } from "../policy/policy.ts";

/** The fields of the plugin's configuration, and of each of its rules. */
const FIELDS = ["limits", "maxProjectsForSystemUsers", "maxProjectsForServiceAccounts"];
const RULE_FIELDS = ["selector", "maxProjects"];

/** Converts a configuration; the fields have the same names. Notes name unconverted fields, and different results. */
export const importCode: CommandCode<ImportArgs> = {
  run: ({ args: { file } }) => {
    const read = file.documents.map((document) =>
      isObject(document) ? configurationsIn(document, [limitConfiguration]) : undefined,
    );
    const problems = read.flatMap((one) => one?.problems ?? []);
    const found = read.flatMap((one) => one?.found ?? []);
    const [first] = found;
    if (first === undefined || found.length > 1 || problems.some(({ severity }) => severity === "error")) {
      const [problem] = problems;
      if (problem !== undefined) return { wrong: `${file.name}: ${describeProblem(problem)}` };
      const expected = "a ProjectRequestLimitConfig, bare or in a master-config.yaml, is expected";
      return { wrong: `${file.name}: ${expected}, found ${found.length}` };
    }
    const { resource, left } = converted(first.object["spec"]);
    const checked = checkObject(projectRequestLimit, resource, new Store(), {
      installation: DEFAULT_INSTALLATION,
      gates: new Gates([]),
    });
    const errors = checked.filter(({ severity }) => severity === "error");
    if (errors.length > 0)
      return { wrong: errors.map((one) => `${file.name}: ${describeProblem(one)}`).join("\n") };
    return {
      data: resource,
      manifests: [resource],
      notes: [
        // The output is written in the current spelling.
        ...problems.filter(({ code }) => code !== PROBLEM.deprecated).map(describeProblem),
        ...left.map((field) => `${field}: not converted, because the plugin has no such field`),
        ...checked.map(describeProblem),
        ...differencesOf(resource),
      ],
      exit: "fine",
    };
  },
};

/** Unknown fields are left out: kubectl refuses an object that has them. */
function converted(spec: Json | undefined): { resource: JsonObject; left: string[] } {
  const left: string[] = [];
  const known = (value: Json | undefined, fields: readonly string[], path: string): Json => {
    if (!isObject(value)) return value ?? null;
    left.push(
      ...Object.keys(value)
        .filter((key) => !fields.includes(key))
        .map((key) => `${path}${key}`),
    );
    return Object.fromEntries(
      fields.flatMap((key) => {
        const one = value[key];
        return one === undefined || one === null ? [] : [[key, one]];
      }),
    );
  };
  const fields = known(isObject(spec) ? spec : {}, FIELDS, "");
  const limits = at(fields, "limits");
  const rules = Array.isArray(limits)
    ? { limits: limits.map((rule, i) => known(rule, RULE_FIELDS, `limits[${i}].`)) }
    : {};
  const resource = {
    apiVersion: `${projectRequestLimit.group}/v1`,
    kind: projectRequestLimit.kind,
    metadata: { name: SINGLETON },
    spec: { ...(isObject(fields) ? fields : {}), ...rules },
  };
  return { resource, left };
}

/** One line for each difference, and how to avoid it. */
function differencesOf(resource: JsonObject): string[] {
  const limits = projectRequestLimit.prepare(resource, refOf(projectRequestLimit, resource)).policy;
  const found = limits === undefined ? [] : differences(limits);
  return [
    ...found.map((one) => `differs from the plugin: ${one}`),
    ...(found.length === 0 ? [] : ["add extensions: Disabled to spec for the answers of OpenShift 3.11"]),
  ];
}
