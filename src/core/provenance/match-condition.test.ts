import { expect, test } from "vitest";
import { assemblyIn, MODES } from "../../../test/builders/modes.ts";
import type { Hook } from "../module/hook.ts";
import { PROVENANCE } from "./annotation.ts";
import { carries, SENT_PROVENANCE } from "./match-condition.ts";

/** As wide, and more. */
const HAS_PROVENANCE = carries("object", PROVENANCE);

/** Conditions that leave requests to another hook of the same module, or exclude objects that are being deleted. */
const ELSEWHERE = ["template-changes", "not-asked-by-a-closed-hook", "not-being-deleted"];

test("every hook that changes fields of other modules, too, is called if a request brings provenance", () => {
  const conditions = Object.values(MODES).flatMap((mode) => {
    const hooks = assemblyIn(mode).hooks.filter(({ phase }) => phase === "mutate");
    const resourcesOf = ({ rules }: Hook) => rules.flatMap(({ resources }) => resources);
    const isShared = (hook: Hook) =>
      hooks.some(
        (other) =>
          other.module !== hook.module &&
          resourcesOf(other).some((resource) => resourcesOf(hook).includes(resource)),
      );
    return hooks
      .filter(isShared)
      .flatMap((hook) => (hook.conditions ?? []).map((condition) => ({ hook: hook.name, ...condition })));
  });
  const own = conditions.filter(({ name }) => !ELSEWHERE.includes(name));
  expect(own.map(({ hook }) => hook)).toContain("pod-os-write");
  const silent = own.filter(
    ({ expression }) =>
      !expression.split(" || ").includes(HAS_PROVENANCE) && !expression.includes(SENT_PROVENANCE),
  );
  expect(silent).toEqual([]);
});
