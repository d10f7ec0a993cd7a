import { expect, test } from "vitest";
import type { JsonObject } from "../../../core/json.ts";
import { settingsSchema } from "../settings.ts";

const CP = { matchLabels: { "node-role.kubernetes.io/control-plane": "" } };
const GROUP = {
  name: "ControlPlane",
  labelSelector: CP,
  mode: "Inform",
  authorizedUsers: ["kube-system/default"],
};

function problems(...groups: readonly JsonObject[]): string[] {
  const { error } = settingsSchema.safeParse({ policy: { groups } });
  return (error?.issues ?? []).map(({ path, message }) => `${path.join(".")}: ${message}`);
}

test.each<[string, JsonObject[], RegExp[]]>([
  ["nothing wrong", [GROUP], []],
  [
    "a selector of every node",
    [{ ...GROUP, labelSelector: {} }],
    [/^policy\.groups\.0\.labelSelector: selects every node: .* AllNodes/],
  ],
  ["the same, acknowledged", [{ ...GROUP, labelSelector: {}, acknowledge: ["AllNodes"] }], []],
  ["two groups of one name", [GROUP, GROUP], [/^policy\.groups\.1\.name: duplicate group "ControlPlane"/]],
  [
    "an invalid principal",
    [{ ...GROUP, authorizedUsers: ["kube-system/default", "a/b/c"] }],
    [/^policy\.groups\.0\.authorizedUsers\.1: /],
  ],
  [
    "a selector that can't be read",
    [{ ...GROUP, labelSelector: { matchExpressions: [{ key: "a", operator: "In", values: [] }] } }],
    [/^policy\.groups\.0\.labelSelector/],
  ],
])("an inline policy with %s", (_case, groups, expected) => {
  const found = problems(...groups);
  expect(found).toHaveLength(expected.length);
  for (const [i, pattern] of expected.entries()) expect(found[i]).toMatch(pattern);
});
