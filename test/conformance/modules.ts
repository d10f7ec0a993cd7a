import { z } from "zod";
import { allow } from "../../src/core/decision/decision.ts";
import type { Finding } from "../../src/core/decision/finding.ts";
import { type JsonObject, own, stringAt } from "../../src/core/json.ts";
import { labelsOf } from "../../src/core/kubernetes/object.ts";
import { defineModule, type Module } from "../../src/core/module/module.ts";
import { type Problem, problem } from "../../src/core/policy/problem.ts";

/** A policy that adds its word to every ConfigMap. Small, but covers everything that a source has to handle. */
interface Greeting {
  readonly name: string;
  readonly word: string;
}

export const GROUP = "conformance.usher.dev";

export const GREETINGS = `greetings.${GROUP}`;

function badPattern(object: JsonObject): Problem[] {
  return stringAt(object, "spec", "pattern") === "("
    ? [problem(["spec", "pattern"], '"(" is not a pattern', 'write "\\("')]
    : [];
}

/** Each evaluation reports the policies in force, so that a test can compare them with those that the source shows. */
export const greeter: Module = defineModule<Greeting>({
  name: "greeter",
  summary: "greets ConfigMaps",
  kinds: [
    {
      group: GROUP,
      kind: "Greeting",
      plural: "greetings",
      singular: "greeting",
      scope: "Cluster",
      standing: "resource",
      summary: "a word for every ConfigMap",
      versions: [
        {
          name: "v1",
          storage: true,
          spec: z.strictObject({
            word: z.string(),
            operator: z.enum(["Exists", "Equal"]).optional(),
            pattern: z.string().optional(),
          }),
        },
      ],
      check: (object) => badPattern(object),
      prepare: (object, { name }) => {
        const problems = badPattern(object);
        const word = stringAt(object, "spec", "word") ?? "";
        return { policy: problems.length > 0 ? undefined : { name, word }, problems };
      },
    },
  ],
  reads: [
    {
      resource: "configmaps",
      group: "",
      version: "v1",
      kind: "ConfigMap",
      scope: "Namespaced",
      keep: [["metadata", "labels"]],
      indexes: [
        {
          name: "app",
          values: (object) => {
            const app = own(labelsOf(object), "app");
            return typeof app === "string" ? [app] : [];
          },
        },
      ],
    },
  ],
  hooks: () => [
    {
      name: "greeter",
      module: "greeter",
      phase: "validate",
      failure: "open",
      tooLarge: "allow",
      timeoutSeconds: 5,
      sideEffects: "None",
      rules: [{ groups: [""], versions: ["v1"], resources: ["configmaps"], operations: ["CREATE"] }],
    },
  ],
  assemble: (policies) => ({
    validate: () =>
      allow(
        policies.map(
          ({ name, word }): Finding => ({
            rule: "greet",
            outcome: "applied",
            message: `${name}: ${word}`,
          }),
        ),
      ),
  }),
});
