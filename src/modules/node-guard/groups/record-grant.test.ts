import { expect, test } from "vitest";
import { atOnce } from "../../../../test/builders/evaluation.ts";
import { override } from "../../../../test/builders/guard.ts";
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
const annotated = (annotations?: JsonObject): JsonObject =>
  override({ group: "ControlPlane" }, annotations === undefined ? {} : { annotations });

function recorded(object: JsonObject, change: Partial<AdmissionRequest>): unknown {
  const assembly = new Assembly([nodeGuard], DEFAULT_INSTALLATION, new Gates([{ ...GATE, default: true }]));
  const request = requestFor(object, { userInfo: { username: "sre", groups: [] }, ...change });
  const call = { assembly, phase: "mutate", hooks: assembly.hooks, request, now: 0 } as const;
  return at(atOnce(evaluate(call, outside())).draft.object, "metadata", "annotations", GRANTED_BY);
}

test.each<[string, JsonObject, Partial<AdmissionRequest>, string]>([
  ["the author is recorded", annotated(), {}, "sre"],
  ["a forged record is replaced", annotated({ [GRANTED_BY]: "mallory" }), {}, "sre"],
  [
    "the record stays",
    annotated({ [GRANTED_BY]: "me" }),
    {
      operation: "UPDATE",
      oldObject: annotated({ [GRANTED_BY]: "sre" }),
      userInfo: { username: "mallory", groups: [] },
    },
    "sre",
  ],
  [
    "a removed record is restored",
    annotated(),
    {
      operation: "UPDATE",
      oldObject: annotated({ [GRANTED_BY]: "sre" }),
      userInfo: { username: "mallory", groups: [] },
    },
    "sre",
  ],
])("%s", (_case, object, change, by) => {
  expect(recorded(object, change)).toBe(by);
});
