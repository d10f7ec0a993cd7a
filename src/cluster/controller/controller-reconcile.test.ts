// How a plan comes about, and how it is told.
import { expect, test } from "vitest";
import { applying, holdingWith, namesOf, until } from "../../../test/support/cluster/controller.ts";
import { need } from "../../core/evaluate/decision.ts";
import type { Need } from "../../core/evaluate/need.ts";
import { describeResult } from "./controller.ts";

const SEAT: Need = { get: { resource: "seats", name: "one" }, live: true };

test("what a plan needs is fetched, and it is made again; three times at most", async () => {
  const asked: Need[] = [];
  const { holding, written, changed } = holdingWith(
    {
      plan: (key, { facts }) => {
        const fact = facts.of(SEAT);
        if (fact === undefined) return need(SEAT);
        return { writes: [applying(`${key}-${"found" in fact ? fact.found : "none"}`)] };
      },
    },
    {
      fetch: async (needs, deadline) => {
        expect(deadline.remaining()).toBeGreaterThan(0);
        asked.push(...needs);
        return [{ found: "seat", complete: true }];
      },
    },
  );
  holding.start();
  changed("a");
  await until(() => written.length === 1);
  expect(namesOf(written)).toEqual(["a-seat"]);
  expect(asked).toEqual([SEAT]);
  await holding.stop();
});

test("a reconciler that asks for ever, or breaks, holds up no other key, and is tried again", async () => {
  const tried: string[] = [];
  const { holding, written, said, changed } = holdingWith({
    plan: (key, { facts }) => {
      tried.push(key);
      if (key === "breaks") throw new Error("inner workings");
      // Never the same, so that no fact ever answers it.
      if (key === "asks") {
        const next: Need = { get: { resource: "seats", name: String(tried.length) } };
        facts.of(next);
        return need(next);
      }
      return { writes: [applying(key)] };
    },
  });
  holding.start();
  changed("breaks", "asks", "fine");
  await until(() => tried.filter((key) => key === "breaks").length >= 2 && written.length === 1);
  await until(() => tried.filter((key) => key === "asks").length >= 4);
  expect(namesOf(written)).toEqual(["fine"]);
  expect(said.some((line) => line.includes("inner workings"))).toBe(true);
  expect(said.some((line) => line.includes("needs more than it was allowed"))).toBe(true);
  await holding.stop();
});

test("a dry run prints what would be done and does nothing", async () => {
  const printed: string[] = [];
  const { holding, written, changed } = holdingWith({}, { dryRun: (text) => void printed.push(text) });
  holding.start();
  changed("a");
  await until(() => printed.length === 1);
  expect(written).toEqual([]);
  expect(printed[0]).toContain("seating a:\n  apply ConfigMap usher/a");
  await holding.stop();
});

test("a plan as a person reads it", () => {
  const of = { resource: "nodes", name: "n1" };
  const text = describeResult("seating", "n1", {
    writes: [
      { patch: [{ op: "remove", path: "/spec/x" }], of, resourceVersion: "4" },
      { delete: { resource: "pods", namespace: "shop", name: "p" }, resourceVersion: "5" },
      { status: { seated: 1 }, of, resourceVersion: "6" },
    ],
    again: 30,
  });
  const heads = text.split("\n").filter((line) => !line.startsWith("    "));
  expect(heads).toEqual([
    "seating n1:",
    "  patch nodes n1",
    "  delete pods shop/p",
    "  status of nodes n1",
    "  again in 30 s",
  ]);
  expect(describeResult("seating", "n1", { writes: [] })).toBe("seating n1: nothing to do");
});
