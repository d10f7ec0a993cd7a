import { isObject, type Json, type JsonObject } from "../../../core/json.ts";
import type { CommandCode } from "../../../core/module/command.ts";
import { Gates } from "../../../core/module/gates.ts";
import { DEFAULT_INSTALLATION } from "../../../core/module/installation.ts";
import { checkObject } from "../../../core/policy/check.ts";
import { configurationsIn } from "../../../core/policy/configuration.ts";
import { describeProblem } from "../../../core/policy/problem.ts";
import { Store } from "../../../core/view/store.ts";
import type { ImportArgs } from "../declaration.ts";
import { projectRequestLimit } from "../kinds.ts";
import { limitConfiguration } from "../policy/limit-configuration.ts";
import { SINGLETON } from "../policy/policy.ts";

const FIELDS = ["limits", "maxProjectsForSystemUsers", "maxProjectsForServiceAccounts"];

const NOTE =
  "usher exempts the groups of spec.exempt, by default system:masters; OpenShift's plugin exempts no group. Write exempt: {groups: []} to limit them too.";

/** Converts a configuration; the fields have the same names, and the same meaning. */
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
    const resource = resourceOf(first.object["spec"]);
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
      notes: [...checked.map(describeProblem), NOTE],
      exit: "fine",
    };
  },
};

function resourceOf(spec: Json | undefined): JsonObject {
  const fields = isObject(spec) ? spec : {};
  const unknown = Object.keys(fields).filter((key) => !FIELDS.includes(key));
  return {
    apiVersion: `${projectRequestLimit.group}/v1`,
    kind: projectRequestLimit.kind,
    metadata: { name: SINGLETON },
    // Unknown fields are kept, so that they are reported.
    spec: Object.fromEntries(
      [...FIELDS, ...unknown].flatMap((key) => {
        const value = fields[key];
        return value === undefined || value === null ? [] : [[key, value]];
      }),
    ),
  };
}
