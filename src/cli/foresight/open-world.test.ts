import { describe, expect, test } from "vitest";
import { pod } from "../../../test/builders/pod.ts";
import type { Fact, Need } from "../../core/decision/need.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import { readAll } from "./open-world.ts";

const PODS = ["a", "b", "c"].map((name) => pod({ name }));

/** Answers one list after the other, and records where each begins. */
function answering(...facts: readonly Fact[]) {
  const asked: (string | undefined)[] = [];
  const fetch = async (needs: readonly Need[]): Promise<readonly Fact[]> => {
    const [need] = needs;
    asked.push(need !== undefined && "list" in need ? need.list.continue : undefined);
    return [facts[asked.length - 1] ?? { failed: "asked too often" }];
  };
  return { asked, fetch };
}

describe("a list that a command reads", () => {
  test("is followed to its last page", async () => {
    const { asked, fetch } = answering(
      { found: PODS.slice(0, 2), complete: false, next: "t" },
      { found: PODS.slice(2), complete: true },
    );
    const { objects, failure } = await readAll("pods", fetch);
    expect(objects.map(nameOf)).toEqual(["a", "b", "c"]);
    expect(asked).toEqual([undefined, "t"]);
    expect(failure).toBeUndefined();
  });

  test.each<[string, Fact, string]>([
    [
      "is too large for memory",
      { found: PODS.slice(2), complete: false },
      "pods: list is incomplete, timed out or too large for memory",
    ],
    ["fails midway", { failed: "request deadline exceeded" }, "pods: request deadline exceeded"],
    ["is forbidden", { failed: 'User "eve" cannot list pods', status: 403 }, 'User "eve" cannot list pods'],
  ])("that %s is partial: it has what was read, and a sentence that names it", async (_, last, sentence) => {
    const { fetch } = answering({ found: PODS.slice(0, 2), complete: false, next: "t" }, last);
    const { objects, failure } = await readAll("pods", fetch);
    expect(objects.length).toBeGreaterThanOrEqual(2);
    expect(failure).toBe(sentence);
  });

  test("of a kind that is not served has no objects, and nothing is missing", async () => {
    const { fetch } = answering({ absent: "NotServed" });
    expect(await readAll("rollouts.argoproj.io", fetch)).toEqual({ objects: [] });
  });
});
