import { expect, test } from "vitest";
import { DEFAULT_INSTALLATION } from "../installation/installation.ts";
import { at, listAt } from "../json.ts";
import { flowControl } from "./flow-control.ts";

test("usher has seats that are not lendable, and all of its requests use them", () => {
  const [level, schema, ...more] = flowControl({ ...DEFAULT_INSTALLATION, namespace: "guests" });
  expect(more).toEqual([]);
  expect(at(level, "spec", "limited", "lendablePercent")).toBe(0);
  expect(at(level, "spec", "limited", "limitResponse", "type")).toBe("Queue");
  expect(at(schema, "spec", "priorityLevelConfiguration", "name")).toBe(at(level, "metadata", "name"));
  const [rule, ...others] = listAt(schema, "spec", "rules");
  expect(others).toEqual([]);
  expect(listAt(rule, "subjects")).toEqual([
    { kind: "ServiceAccount", serviceAccount: { name: "usher", namespace: "guests" } },
  ]);
  // Kubernetes' own schema for all service accounts has 9000, and the lowest number wins.
  expect(at(schema, "spec", "matchingPrecedence")).toBeLessThan(9_000);
});

test("an account of another name is matched by it", () => {
  const [, schema] = flowControl(DEFAULT_INSTALLATION, { account: "doorman" });
  expect(at(schema, "spec", "rules", 0, "subjects", 0, "serviceAccount")).toEqual({
    name: "doorman",
    namespace: "usher-system",
  });
});
