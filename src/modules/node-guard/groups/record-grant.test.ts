import { expect, test } from "vitest";
import { atOnce } from "../../../../test/builders/evaluation.ts";
import { outside } from "../../../../test/builders/outside.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import { evaluate } from "../../../core/evaluate/evaluate.ts";
import { Gates } from "../../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../../core/installation/installation.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import { Assembly } from "../../../core/module/assembly.ts";
import { nodeGuard } from "../index.ts";
import { GATE } from "../settings.ts";

const GRANTED_BY = "usher.dev/granted-by";
const override = (annotations?: JsonObject): JsonObject => ({
  apiVersion: "usher.dev/v1alpha1",
  kind: "NodeGuardOverride",
  metadata: { name: "o", ...(annotations === undefined ? {} : { annotations }) },
  spec: { group: "ControlPlane" },
});

function recorded(object: JsonObject, change: Partial<AdmissionRequest>): unknown {
  const assembly = new Assembly([nodeGuard], DEFAULT_INSTALLATION, new Gates([{ ...GATE, default: true }]));
  const request = requestFor(object, { userInfo: { username: "sre", groups: [] }, ...change });
  const call = { assembly, phase: "mutate", hooks: assembly.hooks, request, now: 0 } as const;
  return at(atOnce(evaluate(call, outside())).draft.object, "metadata", "annotations", GRANTED_BY);
}

test.each<[string, JsonObject, Partial<AdmissionRequest>, string]>([
  ["the author is recorded", override(), {}, "sre"],
  ["a forged record is replaced", override({ [GRANTED_BY]: "mallory" }), {}, "sre"],
  [
    "the record stays",
    override({ [GRANTED_BY]: "me" }),
    {
      operation: "UPDATE",
      oldObject: override({ [GRANTED_BY]: "sre" }),
      userInfo: { username: "mallory", groups: [] },
    },
    "sre",
  ],
  [
    "a removed record is restored",
    override(),
    {
      operation: "UPDATE",
      oldObject: override({ [GRANTED_BY]: "sre" }),
      userInfo: { username: "mallory", groups: [] },
    },
    "sre",
  ],
])("%s", (_case, object, change, by) => {
  expect(recorded(object, change)).toBe(by);
});
