import { expect, test } from "vitest";
import type { EntryList, Group, GroupEntry } from "./group.ts";
import { actorMatches, EntryIndex, emergencyMatches, parseEntry, podMatches } from "./principals.ts";

function group(
  lists: Partial<Record<EntryList, string[]>>,
  scope: "Namespace" | "Exact" = "Namespace",
): Group {
  const all = Object.entries(lists).flatMap(([list, texts]) =>
    texts.map((text) => parseEntry(text, list as EntryList, "file").entry),
  );
  const read = all.filter((one): one is GroupEntry => one !== undefined);
  const emergency = read.filter(({ list }) => list.startsWith("emergency"));
  const entries = read.filter(({ list }) => !list.startsWith("emergency"));
  return {
    entries,
    emergency,
    index: new EntryIndex(entries, scope),
    emergencyIndex: new EntryIndex(emergency, "Namespace"),
  } as unknown as Group;
}

const LISTED = group({
  authorizedUsers: [
    "system:kube-scheduler",
    "kube-system/default",
    "system:serviceaccount:ops:runner",
    "must-*/default",
  ],
  exactUsers: ["corp/alice"],
  authorizedGroups: ["sre", "system:serviceaccounts:backup"],
  assigners: ["team-sched/my-scheduler"],
  workloads: ["web/front"],
  emergencyUsers: ["root-of-all"],
  emergencyGroups: ["breakglass"],
});

test.each<[string, string[], string | undefined]>([
  ["system:kube-scheduler", [], "system:kube-scheduler"],
  ["System:kube-scheduler", [], undefined],
  [" system:kube-scheduler", [], undefined],
  ["system:kube-sсheduler", [], undefined],
  ["system:serviceaccount:kube-system:default", [], "kube-system/default"],
  ["kube-system/default", [], undefined],
  ["system:serviceaccount:kube-system:default:x", [], undefined],
  ["system:serviceaccount::default", [], undefined],
  ["system:serviceaccount:ops:runner", [], "system:serviceaccount:ops:runner"],
  ["system:serviceaccount:must-gather-x:default", [], "must-*/default"],
  ["system:serviceaccount:must-gather-x:other", [], undefined],
  ["system:serviceaccount:must-gather-x:evil:default", [], undefined],
  ["corp/alice", [], "corp/alice"],
  ["sre", [], undefined],
  ["bob", ["sre"], "sre"],
  ["system:serviceaccount:backup:a", ["system:serviceaccounts:backup"], "system:serviceaccounts:backup"],
  ["system:serviceaccount:team-sched:my-scheduler", [], "team-sched/my-scheduler"],
  ["system:serviceaccount:web:front", [], undefined],
  ["root-of-all", [], undefined],
  ["x", ["breakglass"], undefined],
  ["admin", ["system:masters"], undefined],
  ["", [], undefined],
])("actor %j in %j matches %j", (username, groups, entry) => {
  expect(actorMatches({ username, groups }, LISTED)?.entry).toBe(entry);
});

test.each<[string, string | undefined, string | undefined]>([
  ["kube-system", undefined, "kube-system/default"],
  ["kube-system", "coredns", "kube-system/default"],
  ["ops", "x", "system:serviceaccount:ops:runner"],
  ["must-gather-1", "x", "must-*/default"],
  ["backup", "a", "system:serviceaccounts:backup"],
  ["team-sched", "my-scheduler", undefined],
  ["web", "front", "web/front"],
  ["team-a", "default", undefined],
  ["corp", "alice", undefined],
  ["", "default", undefined],
])("a pod of %j as %j matches %j", (namespace, account, entry) => {
  expect(podMatches(namespace, account, LISTED)?.entry).toBe(entry);
});

test("with the scope Exact only the account itself counts", () => {
  const exact = group({ authorizedUsers: ["a/b", "c/default", "p-*/x"] }, "Exact");
  expect(podMatches("a", "b", exact)?.entry).toBe("a/b");
  expect(podMatches("a", "other", exact)).toBeUndefined();
  expect(podMatches("c", undefined, exact)?.entry).toBe("c/default");
  expect(podMatches("c", "", exact)?.entry).toBe("c/default");
  expect(podMatches("p-1", "x", exact)?.entry).toBe("p-*/x");
  expect(podMatches("p-1", "y", exact)).toBeUndefined();
});

test("emergency identities vouch, and are not actors", () => {
  expect(emergencyMatches({ username: "root-of-all" }, LISTED)?.list).toBe("emergencyUsers");
  expect(emergencyMatches({ username: "x", groups: ["breakglass"] }, LISTED)?.list).toBe("emergencyGroups");
  expect(emergencyMatches({ username: "system:kube-scheduler" }, LISTED)).toBeUndefined();
});

test.each<[EntryList, unknown, RegExp]>([
  ["authorizedUsers", "a/b/c", /not a service account.*exactUsers/],
  ["authorizedUsers", "", /empty/],
  ["authorizedUsers", " a", /space/],
  ["authorizedUsers", "a\u0000", /control/],
  ["authorizedUsers", "*/default", /beginning of a namespace/],
  ["authorizedUsers", "system:serviceaccount:a", /not a service account/],
  ["authorizedUsers", "A/b", /not a service account/],
  ["authorizedUsers", "x".repeat(600), /longer/],
  ["authorizedUsers", 5, /string/],
  ["authorizedUsers", null, /string/],
  ["workloads", "alice", /run no pods/],
  ["emergencyUsers", "a-*/b", /in full/],
  ["exactUsers", "", /empty/],
  ["authorizedGroups", "system:serviceaccounts:", /namespace/],
  ["authorizedGroups", "a ", /space/],
])("%s: %j is refused", (list, text, problem) => {
  const read = parseEntry(text as never, list, "file");
  expect(read.entry).toBeUndefined();
  expect(read.problem).toMatch(problem);
});

test.each<[EntryList, string]>([
  ["authorizedUsers", "a-*/b"],
  ["authorizedGroups", "system:authenticated"],
])("%s: %j counts with a warning", (list, text) => {
  expect(parseEntry(text, list, "file")).toMatchObject({
    entry: { entry: text },
    warning: expect.any(String),
  });
});
