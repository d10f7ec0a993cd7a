import { describe, expect, test } from "vitest";
import { assemblyOf } from "../../../test/builders/evaluation.ts";
import { finding, moduleThat } from "../../../test/builders/module.ts";
import { deployment } from "../../../test/builders/pod.ts";
import { allow, deny, need } from "../decision/decision.ts";
import { Facts } from "../decision/need.ts";
import type { JsonObject } from "../json.ts";
import { workloadTable } from "../kubernetes/workloads.ts";
import type { Context, Module } from "../module/module.ts";
import { reapplyRequested, requestReapply, scanObject, withdrawReapply } from "./drift-scan.ts";

const ANNOTATION = "usher.dev/again";
const WORKLOAD = workloadTable().byKind("apps", "Deployment");
if (WORKLOAD === undefined) throw new Error("no Deployment");

function scanned(mutate: (context: Context) => ReturnType<typeof allow>, hook = {}): Module {
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

const writes = scanned(({ draft }) => {
  draft.set(["spec", "template", "spec", "nodeName"], "n1", finding({ policy: { kind: "P", name: "a" } }));
  return allow();
});

describe("one object", () => {
  test("the module evaluates a dry run of an update that requests reapplying", () => {
    const requests: Context["request"][] = [];
    const recording = scanned((context) => {
      requests.push(context.request);
      return allow();
    });
    driftScan(recording, deployment());
    expect(requests).toMatchObject([
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

  test("reports the injections, and does not change the object", () => {
    const object = deployment();
    const before = structuredClone(object);
    expect(driftScan(writes, object)).toMatchObject({
      rolls: true,
      carried: [{ policy: "P/a", state: "missing", parts: [{ field: "nodeName", wants: "n1" }] }],
    });
    expect(object).toEqual(before);
  });

  test("skips objects that the module or its hook does not select", () => {
    const nothing = { carried: [], rolls: false };
    expect(driftScan(writes, { ...deployment(), apart: true })).toEqual(nothing);
    const elsewhere = scanned(() => allow(), { namespaces: { only: ["other"] } });
    expect(driftScan(elsewhere, deployment())).toEqual(nothing);
    const unable = moduleThat("seating", { mutate: () => allow() });
    expect(driftScan(unable, deployment())).toEqual(nothing);
  });

  test("reports denials, and requests to reapply that were skipped", () => {
    const refuses = scanned(() =>
      deny({ code: 403, reason: "Forbidden" }, [finding({ outcome: "violated", message: "no" })]),
    );
    expect(driftScan(refuses, deployment())).toEqual({ carried: [], rolls: false, refused: "no" });
    const skips = scanned(() =>
      allow([finding({ rule: "reapply", outcome: "skipped", message: "not now" })]),
    );
    expect(driftScan(skips, deployment())).toMatchObject({ refused: "not now" });
  });

  test("returns needs", () => {
    const get = { get: { resource: "nodes", name: "n1" } };
    const asks = scanned((() => need(get)) as unknown as () => ReturnType<typeof allow>);
    expect(driftScan(asks, deployment())).toEqual({ needs: [get] });
  });
});

describe("the request to reapply", () => {
  test("adds to annotations, or creates them", () => {
    expect(requestReapply(deployment(), ANNOTATION, "me")).toEqual([
      { op: "add", path: "/metadata/annotations", value: { [ANNOTATION]: "me" } },
    ]);
    expect(requestReapply(deployment({ annotations: { a: "b" } }), ANNOTATION, "me")).toEqual([
      { op: "add", path: "/metadata/annotations/usher.dev~1again", value: "me" },
    ]);
  });

  test("is pending until its annotation is removed", () => {
    expect(reapplyRequested(deployment({ annotations: { [ANNOTATION]: "" } }), ANNOTATION)).toBe(true);
    expect(reapplyRequested(deployment(), ANNOTATION)).toBe(false);
  });

  test("is withdrawn by removing the annotation alone", () => {
    expect(withdrawReapply(ANNOTATION)).toEqual([
      { op: "remove", path: "/metadata/annotations/usher.dev~1again" },
    ]);
  });
});
