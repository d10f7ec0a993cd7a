import { expect, test } from "vitest";
import { ask, assemblyOf } from "../../../test/builders/evaluation.ts";
import { outside } from "../../../test/builders/outside.ts";
import { pod } from "../../../test/builders/pod.ts";
import { requestFor } from "../../../test/builders/request.ts";
import { allow } from "../decision/decision.ts";
import { DEFAULT_INSTALLATION } from "../installation/installation.ts";
import { listAt, stringAt } from "../json.ts";
import { defineModule } from "../module/module.ts";
import { webhookConfigurations } from "./webhooks.ts";

test("both entries of a shadow hook run the same evaluator, under the name that the module declared", () => {
  const rules = [{ groups: [""], versions: ["v1"], resources: ["pods"], operations: ["CREATE" as const] }];
  const seen: string[] = [];
  const module = defineModule({
    name: "guard",
    summary: "for tests",
    kinds: [],
    reads: [],
    hooks: () => [
      {
        name: "guard",
        module: "guard",
        phase: "validate",
        rules,
        failure: "closed",
        tooLarge: "deny",
        openShadow: true,
        timeoutSeconds: 3,
        sideEffects: "None",
      },
    ],
    assemble: () => ({
      validate: ({ hook, request }) => {
        seen.push(`${hook} ${request.namespace}`);
        return allow();
      },
    }),
  });
  const assembly = assemblyOf([module]);
  for (const namespace of ["shop", "kube-system", "usher-system"])
    void ask([module], requestFor(pod({ namespace })), outside(), { phase: "validate" });
  expect(seen).toEqual(["guard shop", "guard kube-system"]);
  const { validating } = webhookConfigurations(assembly.declaredHooks, DEFAULT_INSTALLATION, {
    endpoint: { url: "https://usher" },
  });
  const entries = listAt(validating, "webhooks").map((entry) => [
    stringAt(entry, "failurePolicy"),
    stringAt(entry, "clientConfig", "url"),
  ]);
  expect(entries).toEqual([
    ["Fail", "https://usher/validate/guard"],
    ["Ignore", "https://usher/validate/guard"],
  ]);
});
