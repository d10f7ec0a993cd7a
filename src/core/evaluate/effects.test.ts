import { describe, expect, test } from "vitest";
import { ask, atOnce } from "../../../test/builders/evaluation.ts";
import { finding, moduleThat } from "../../../test/builders/module.ts";
import { outside } from "../../../test/builders/outside.ts";
import { deployment, pod } from "../../../test/builders/pod.ts";
import { requestFor } from "../../../test/builders/request.ts";
import { allow, deny, need } from "../decision/decision.ts";
import type { AdmissionRequest } from "../decision/request.ts";
import { Gates } from "../installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../installation/installation.ts";
import type { Module } from "../module/module.ts";
import type { PolicyRef } from "../policy/policy-ref.ts";
import { Store } from "../view/store.ts";
import { countsAfter, type Effects, effectsOf, METRICS } from "./effects.ts";

const P: PolicyRef = { kind: "Rule", name: "p", generation: 2 };
const Q: PolicyRef = { kind: "Rule", namespace: "shop", name: "q" };

const patcher = moduleThat("patcher", {
  mutate: ({ draft }) => {
    draft.set(["spec", "x"], 1, finding({ policy: P }));
    draft.set(["spec", "y"], 1, finding({ policy: P }));
    return allow([
      finding({ policy: P, outcome: "skipped" }),
      finding({ policy: Q, outcome: "same", event: { type: "Normal", reason: "Kept" } }),
      finding({
        outcome: "failed",
        message: "no policy",
        event: { type: "Warning", reason: "Odd", regarding: { kind: "Node", name: "n" } },
      }),
    ]);
  },
});
const silent = moduleThat("silent", { mutate: () => allow() });
const refuser = moduleThat("refuser", {
  mutate: () => deny({ code: 403, reason: "Forbidden" }, [finding({ outcome: "violated", message: "no" })]),
});
const unwilling = moduleThat("unwilling", {
  mutate: () => allow(),
  hook: { namespaces: { except: ["shop"] } },
});

const decisions = ({ counts }: Effects) =>
  counts
    .filter(({ metric }) => metric === "usher_decisions_total")
    .map(({ labels }) => `${labels["hook"]} ${labels["phase"]} ${labels["verdict"]}`);

test("an event relates to the finding's policy, to another, or to none", () => {
  const event = { type: "Warning", reason: "Odd" } as const;
  const module = moduleThat("relating", {
    mutate: () =>
      allow([
        finding({ policy: P, event }),
        finding({ policy: P, event: { ...event, related: Q } }),
        finding({ policy: P, event: { ...event, related: "none" } }),
      ]),
  });
  const { events } = effectsOf(atOnce(ask([module], requestFor(pod()))));
  expect(events.map(({ policy }) => policy)).toEqual([P, Q, undefined]);
});

test("a policy known only from provenance causes no counts, events or observations", () => {
  const forged: PolicyRef = { kind: "Rule", name: "forged", gone: true };
  const event = { type: "Warning", reason: "Odd" } as const;
  const restoring = moduleThat("restoring", {
    mutate: ({ draft }) => {
      draft.set(["spec", "x"], 1, finding({ policy: forged, event }));
      return allow([finding({ policy: forged, outcome: "skipped", event })]);
    },
  });
  const { counts, events, tallies } = effectsOf(atOnce(ask([restoring], requestFor(pod()))));
  expect({ events, tallies }).toEqual({ events: [], tallies: [] });
  expect(counts.map(({ metric }) => metric)).not.toContain("usher_policy_outcomes_total");
});

describe("counts", () => {
  test("a cluster policy by name, once for each outcome, and no namespaced policy", () => {
    const { counts } = effectsOf(atOnce(ask([patcher], requestFor(pod()))));
    const ofPolicies = counts.filter(({ metric }) => metric === "usher_policy_outcomes_total");
    expect(ofPolicies.map(({ labels }) => labels)).toEqual([
      { module: "patcher", policy: "p", outcome: "applied" },
      { module: "patcher", policy: "p", outcome: "skipped" },
    ]);
  });

  test("one decision for each hook that ran, and none for others", () => {
    const evaluation = atOnce(ask([patcher, silent, refuser, unwilling], requestFor(pod())));
    expect(decisions(effectsOf(evaluation))).toEqual([
      "patcher-mutate mutate patch",
      "silent-mutate mutate allow",
      "refuser-mutate mutate deny",
    ]);
  });

  test("of two hooks of one module only the one that changed something counts as a patch", () => {
    const [first] = patcher.hooks([], new Store(), DEFAULT_INSTALLATION, new Gates([]));
    const twice: Module = {
      ...patcher,
      hooks: () => (first === undefined ? [] : [first, { ...first, name: "idle-mutate" }]),
      assemble: (...given) => {
        const { mutate } = patcher.assemble(...given);
        return {
          mutate: (context) => (context.hook === first?.name ? mutate?.(context) : undefined) ?? allow(),
        };
      },
    };
    const evaluation = atOnce(ask([twice], requestFor(pod())));
    expect(decisions(effectsOf(evaluation))).toEqual([
      "patcher-mutate mutate patch",
      "idle-mutate mutate allow",
    ]);
  });

  test("are the same when computed without the other effects, and a dry run has none", () => {
    const evaluation = atOnce(ask([patcher, refuser], requestFor(pod())));
    expect(countsAfter(evaluation)).toEqual(effectsOf(evaluation).counts);
    expect(countsAfter({ ...evaluation, request: { ...evaluation.request, dryRun: true } })).toEqual([]);
  });

  test("counts every finding once", () => {
    const { counts } = effectsOf(atOnce(ask([patcher], requestFor(pod()))));
    const outcomes = counts
      .filter(({ metric }) => metric === "usher_findings_total")
      .map(({ labels }) => `${labels["module"]} ${labels["rule"]} ${labels["outcome"]}`);
    expect(outcomes).toEqual([
      "patcher rule applied",
      "patcher rule applied",
      "patcher rule skipped",
      "patcher rule same",
      "patcher rule failed",
    ]);
  });

  test("counts unknown facts", async () => {
    const one = { get: { resource: "nodes", name: "n" } };
    const asker = moduleThat("asker", {
      mutate: ({ facts }) => (facts.of(one) === undefined ? need(one) : allow()),
    });
    const evaluation = await ask([asker], requestFor(pod()), outside({ fact: () => ({ failed: "x" }) }));
    const unknown = effectsOf(evaluation).counts.filter(({ metric }) => metric === "usher_unknown_total");
    expect(unknown).toEqual([{ metric: "usher_unknown_total", labels: { hook: "asker-mutate" } }]);
  });

  test("validating never counts as a patch, although the draft has edits", () => {
    const both = moduleThat("both", {
      mutate: ({ draft }) => {
        draft.set(["spec", "x"], 1, finding({ policy: P }));
        return allow();
      },
      validate: () => allow(),
    });
    const request = requestFor(pod());
    const mutated = atOnce(ask([both], request));
    const judged = atOnce(ask([both], request, outside(), { phase: "validate", draft: mutated.draft }));
    expect(decisions(effectsOf(judged))).toEqual(["both-validate validate allow"]);
  });

  test("have just the labels that their metric declares, and never a user or an object", () => {
    const { counts } = effectsOf(atOnce(ask([patcher, refuser], requestFor(pod()))));
    for (const { metric, labels } of counts)
      expect(Object.keys(labels)).toEqual([...METRICS[metric as keyof typeof METRICS].labels]);
    expect(JSON.stringify(counts)).not.toMatch(/jane|web-0|shop/);
  });
});

test("tallies count each policy's outcomes once per request", () => {
  const { tallies } = effectsOf(atOnce(ask([patcher], requestFor(pod()))));
  expect(tallies).toEqual([
    { module: "patcher", policy: P, outcomes: { matched: 1, applied: 1, skipped: 1 } },
    { module: "patcher", policy: Q, outcomes: { matched: 1, same: 1 } },
  ]);
});

test("events are about the object, or about the finding's object", () => {
  const { events } = effectsOf(atOnce(ask([patcher], requestFor(pod()))));
  expect(events).toMatchObject([
    {
      type: "Normal",
      reason: "Kept",
      regarding: { kind: "Pod", namespace: "shop", name: "web-0" },
      policy: Q,
    },
    { type: "Warning", reason: "Odd", regarding: { kind: "Node", name: "n" }, message: "no policy" },
  ]);
});

const UID = "6e1f2d9c";
const meta = { name: "n1", uid: UID };

test.each<[string, AdmissionRequest, object]>([
  [
    "a cluster-scoped object",
    requestFor({ apiVersion: "v1", kind: "Node", metadata: meta }),
    { apiVersion: "v1", kind: "Node", name: "n1", uid: UID },
  ],
  [
    "one of a group and a namespace",
    requestFor(deployment({ metadata: { ...meta, namespace: "shop" } })),
    { apiVersion: "apps/v1", kind: "Deployment", namespace: "shop", name: "n1", uid: UID },
  ],
  [
    "a Namespace, which is cluster-scoped",
    requestFor({ apiVersion: "v1", kind: "Namespace", metadata: meta }, { namespace: "n1" }),
    { apiVersion: "v1", kind: "Namespace", name: "n1", uid: UID },
  ],
  [
    "one whose uid is not known yet",
    requestFor({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" } }),
    { apiVersion: "v1", kind: "Node", name: "n1" },
  ],
  [
    "one that is being deleted",
    requestFor(
      { apiVersion: "v1", kind: "Node", metadata: meta },
      { operation: "DELETE", object: undefined, oldObject: { metadata: meta } },
    ),
    { apiVersion: "v1", kind: "Node", name: "n1", uid: UID },
  ],
])("an event about %s refers to it as kubectl describe looks for it", (_, request, regarding) => {
  const reporter = moduleThat("reporter", {
    validate: () => allow([finding({ event: { type: "Normal", reason: "Seen" } })]),
  });
  const [first] = effectsOf(atOnce(ask([reporter], request, outside(), { phase: "validate" }))).events;
  expect(first?.regarding).toEqual(regarding);
});

test.each([
  ["a dry run", [patcher, refuser], { dryRun: true }],
  ["a request that no hook matched", [unwilling], {}],
])("%s has no effects", (_what, modules, change) => {
  const evaluation = atOnce(ask(modules, requestFor(pod(), change)));
  expect(effectsOf(evaluation)).toEqual({ events: [], tallies: [], counts: [], observed: [] });
});

test("observations of a finding are returned with their module", () => {
  const fields = { namespace: "shop", actor: "alice" };
  const reporter = moduleThat("reporter", { validate: () => allow([finding({ observe: fields })]) });
  const evaluation = atOnce(ask([reporter], requestFor(pod()), outside(), { phase: "validate" }));
  expect(effectsOf(evaluation).observed).toEqual([{ module: "reporter", fields }]);
});

test("a tally has the conflicts of a policy, a few per request", () => {
  const torn = moduleThat("torn", {
    mutate: () =>
      allow([
        finding({ policy: P, outcome: "skipped", message: "no place" }),
        ...["a", "b", "c", "d"].map((key) =>
          finding({ policy: P, outcome: "skipped", path: ["spec", "nodeSelector", key], message: key }),
        ),
        finding({ policy: Q, path: ["spec", "x"] }),
      ]),
  });
  const { tallies } = effectsOf(atOnce(ask([torn], requestFor(pod({ name: "web" })))));
  expect(tallies.map(({ conflicts }) => conflicts)).toEqual([
    ["a", "b", "c"].map((key) => ({
      object: "Pod shop/web",
      field: `spec.nodeSelector.${key}`,
      message: key,
    })),
    undefined,
  ]);
});

test("an event may have more text than its finding", () => {
  const event = { type: "Warning", reason: "Refused", message: "all that is wrong" } as const;
  const reporter = moduleThat("reporter", { validate: () => allow([finding({ event })]) });
  const request = requestFor(pod());
  const { events } = effectsOf(atOnce(ask([reporter], request, outside(), { phase: "validate" })));
  expect(events).toMatchObject([{ reason: "Refused", message: "all that is wrong" }]);
});
