import { describe, expect, test } from "vitest";
import { assemblyOf } from "../../../test/builders/evaluation.ts";
import { finding, moduleThat } from "../../../test/builders/module.ts";
import { deployment } from "../../../test/builders/pod.ts";
import { allow, deny, need } from "../evaluate/decision.ts";
import { Facts } from "../evaluate/need.ts";
import type { JsonObject } from "../json.ts";
import { workloadTable } from "../kubernetes/workloads.ts";
import type { Context, Module } from "../module/module.ts";
import { driftScanCall, reapplyRequested, requestReapply, scanObject } from "./drift-scan.ts";

const ANNOTATION = "usher.dev/again";
const WORKLOAD = workloadTable().byKind("apps", "Deployment");
if (WORKLOAD === undefined) throw new Error("no Deployment");

function surveying(mutate: (context: Context) => ReturnType<typeof allow>, hook = {}): Module {
  return {
    ...moduleThat("seating", { mutate, hook }),
    driftScan: {
      annotation: ANNOTATION,
      leftAlone: (object) => (object["apart"] === true ? "apart" : undefined),
    },
  };
}

function driftScan(module: Module, object: JsonObject) {
  if (WORKLOAD === undefined) throw new Error("no Deployment");
  return scanObject(module, object, WORKLOAD, assemblyOf([module]), { facts: new Facts(), now: 0 });
}

const writes = surveying(({ object }) => {
  object.set(["spec", "template", "spec", "nodeName"], "n1", finding({ policy: { kind: "P", name: "a" } }));
  return allow();
});

describe("one object", () => {
  test("the module is asked about an update on a dry run that asks for it to be written anew", () => {
    const asked: Context["request"][] = [];
    const listens = surveying((context) => {
      asked.push(context.request);
      return allow();
    });
    driftScan(listens, deployment());
    expect(asked).toMatchObject([
      {
        operation: "UPDATE",
        dryRun: true,
        name: "web",
        namespace: "shop",
        resource: { group: "apps", version: "v1", resource: "deployments" },
        object: { metadata: { annotations: { [ANNOTATION]: expect.any(String) } } },
        oldObject: deployment(),
      },
    ]);
  });

  test("says what would be written, and leaves the object as it is", () => {
    const object = deployment();
    const before = structuredClone(object);
    expect(driftScan(writes, object)).toMatchObject({
      rolls: true,
      carried: [{ policy: "P/a", state: "missing", parts: [{ field: "nodeName", wants: "n1" }] }],
    });
    expect(object).toEqual(before);
  });

  test("what the module leaves alone is not asked about, nor what its hook does not want", () => {
    const nothing = { carried: [], rolls: false };
    expect(driftScan(writes, { ...deployment(), apart: true })).toEqual(nothing);
    const elsewhere = surveying(() => allow(), { namespaces: { only: ["other"] } });
    expect(driftScan(elsewhere, deployment())).toEqual(nothing);
    const unable = moduleThat("seating", { mutate: () => allow() });
    expect(driftScanCall(unable, deployment(), WORKLOAD, assemblyOf([unable]), 0)).toBeUndefined();
  });

  test("a refusal, and what was not done though it was asked for, is told", () => {
    const refuses = surveying(() =>
      deny({ code: 403, reason: "Forbidden" }, [finding({ outcome: "violated", message: "no" })]),
    );
    expect(driftScan(refuses, deployment())).toEqual({ carried: [], rolls: false, refused: "no" });
    const skips = surveying(() =>
      allow([finding({ rule: "reapply", outcome: "skipped", message: "not now" })]),
    );
    expect(driftScan(skips, deployment())).toMatchObject({ refused: "not now" });
  });

  test("what must be known first is said", () => {
    const get = { get: { resource: "nodes", name: "n1" } };
    const asks = surveying((() => need(get)) as unknown as () => ReturnType<typeof allow>);
    expect(driftScan(asks, deployment())).toEqual({ needs: [get] });
  });
});

describe("the request to write anew", () => {
  test("adds to annotations that are there, and makes those that are not", () => {
    expect(requestReapply(deployment(), ANNOTATION, "me")).toEqual([
      { op: "add", path: "/metadata/annotations", value: { [ANNOTATION]: "me" } },
    ]);
    expect(requestReapply(deployment({ annotations: { a: "b" } }), ANNOTATION, "me")).toEqual([
      { op: "add", path: "/metadata/annotations/usher.dev~1again", value: "me" },
    ]);
  });

  test("is heard when it is gone", () => {
    expect(reapplyRequested(deployment({ annotations: { [ANNOTATION]: "" } }), ANNOTATION)).toBe(true);
    expect(reapplyRequested(deployment(), ANNOTATION)).toBe(false);
  });
});
