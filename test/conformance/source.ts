import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Commit } from "../../src/core/decision/decision.ts";
import type { Fact, Need } from "../../src/core/decision/need.ts";
import type { AdmissionRequest } from "../../src/core/decision/request.ts";
import { evaluate } from "../../src/core/evaluate/evaluate.ts";
import type { Evaluation } from "../../src/core/evaluate/evaluate-hooks.ts";
import type { Deadline, Source } from "../../src/core/evaluate/source.ts";
import { type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { labelsOf, nameOf } from "../../src/core/kubernetes/object.ts";
import type { Assembly } from "../../src/core/module/assembly.ts";
import type { Module } from "../../src/core/module/module.ts";
import { GREETINGS, GROUP, greeter } from "./modules.ts";

export interface ObjectRef {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}

/** A source under test, and a way to change the cluster behind it. */
export interface Harness {
  readonly source: Source;
  /** Creates or replaces objects in the cluster. */
  readonly put: (objects: readonly JsonObject[]) => Promise<void>;
  readonly remove: (refs: readonly ObjectRef[]) => Promise<void>;
  /** Resolves when the source has processed everything that was put, removed and committed before. */
  readonly caughtUp: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

/**
 * The contract of every source, whatever its backend. The cluster may be shared and hold other objects, so each test
 * labels its own, reads only those, and removes them. ConfigMaps live in the namespace `default`, which every cluster
 * has.
 */
export function sourceConformance(
  name: string,
  make: (modules: readonly Module[]) => Promise<Harness>,
): void {
  describe(`${name} is a source`, () => {
    let harness: Harness;
    let mark: string;
    let made: ObjectRef[];

    beforeEach(async () => {
      mark = `t-${randomUUID().slice(0, 8)}`;
      made = [];
      harness = await make([greeter]);
    });

    afterEach(async () => {
      await harness.remove(made);
      await harness.stop();
    });

    const put = async (...objects: readonly JsonObject[]): Promise<void> => {
      for (const object of objects) made.push(refOf(object));
      await harness.put(objects);
      await harness.caughtUp();
    };
    const remove = async (object: JsonObject): Promise<void> => {
      made = made.filter((ref) => ref.name !== nameOf(object));
      await harness.remove([refOf(object)]);
      await harness.caughtUp();
    };
    const configMap = (suffix: string, app: string, data = "1"): JsonObject => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: `${mark}-${suffix}`, namespace: "default", labels: { app: `${mark}-${app}`, mark } },
      data: { value: data },
    });
    const greeting = (suffix: string, word: string, pattern?: string): JsonObject => ({
      apiVersion: `${GROUP}/v1`,
      kind: "Greeting",
      metadata: { name: `${mark}-${suffix}` },
      spec: { word, ...(pattern === undefined ? {} : { pattern }) },
    });
    const one = async (need: Need): Promise<Fact> => {
      const facts = await harness.source.fetch([need], unhurried());
      expect(facts).toHaveLength(1);
      return facts[0] ?? { failed: "no fact" };
    };
    const getNeed = (suffix: string, live = false): Need => ({
      get: { resource: "configmaps", namespace: "default", name: `${mark}-${suffix}` },
      ...(live ? { live } : {}),
    });
    const listNeed = (labelSelector: string, limit: number): Need => ({
      list: { resource: "configmaps", namespace: "default", labelSelector },
      limit,
      share: 1,
    });
    const appNames = (app: string): string[] =>
      [...harness.source.assembly.view.lookup("configmaps", "app", `${mark}-${app}`)].map(nameOf).sort();
    const ours = (objects: Iterable<JsonObject>): string[] =>
      [...objects]
        .map(nameOf)
        .filter((found) => found.startsWith(mark))
        .sort();

    test("is ready after construction", () => {
      expect(harness.source.ready).toBe(true);
      expect(harness.source.assembly.view.served(GREETINGS)).toBe(true);
    });

    test("shows objects of the cluster by name, in lists, in indexes and in counts", async () => {
      const { view } = harness.source.assembly;
      await put(configMap("a", "web"), configMap("b", "db"));
      expect(stringAt(view.get("configmaps", "default", `${mark}-a`), "kind")).toBe("ConfigMap");
      expect(ours(view.list("configmaps"))).toEqual([`${mark}-a`, `${mark}-b`]);
      expect(ours(view.list("configmaps", "default"))).toEqual([`${mark}-a`, `${mark}-b`]);
      expect(ours(view.list("configmaps", `${mark}-nowhere`))).toEqual([]);
      expect(appNames("web")).toEqual([`${mark}-a`]);
      // Not exactly two more: other clients may be active in a real cluster.
      expect(view.count("configmaps")).toBe([...view.list("configmaps")].length);
      expect(view.count("configmaps")).toBeGreaterThanOrEqual(2);
    });

    test("keeps only the fields of an object that modules read", async () => {
      await put(configMap("a", "web"));
      const kept = harness.source.assembly.view.get("configmaps", "default", `${mark}-a`);
      expect(kept).toBeDefined();
      expect(kept).not.toHaveProperty("data");
    });

    test("moves an object in the indexes when its labels change", async () => {
      await put(configMap("a", "web"));
      await put(configMap("a", "db"));
      expect(appNames("web")).toEqual([]);
      expect(appNames("db")).toEqual([`${mark}-a`]);
    });

    test("ignores a change in a field that no module keeps", async () => {
      await put(configMap("a", "web", "1"));
      const before = harness.source.assembly.view.get("configmaps", "default", `${mark}-a`);
      await put(configMap("a", "web", "2"));
      expect(harness.source.assembly.view.get("configmaps", "default", `${mark}-a`)).toBe(before);
      const fact = await one(getNeed("a", true));
      expect("found" in fact && stringAt(fact.found, "data", "value")).toBe("2");
    });

    test("removes a deleted object everywhere", async () => {
      const { view } = harness.source.assembly;
      await put(configMap("a", "web"), configMap("b", "web"));
      await remove(configMap("a", "web"));
      expect(view.get("configmaps", "default", `${mark}-a`)).toBeUndefined();
      expect(appNames("web")).toEqual([`${mark}-b`]);
      // Not exactly one less: other clients may be active in a real cluster.
      expect(view.count("configmaps")).toBe([...view.list("configmaps")].length);
      expect([...view.list("configmaps")].map(nameOf)).not.toContain(`${mark}-a`);
      expect(await one(getNeed("a"))).toEqual({ absent: "NotFound" });
    });

    test("prepares policies when they are created, changed and deleted", async () => {
      await put(greeting("p", "hello"));
      expect(await words()).toEqual([`${mark}-p: hello`]);
      await put(greeting("p", "good day"));
      expect(await words()).toEqual([`${mark}-p: good day`]);
      await remove(greeting("p", "good day"));
      expect(await words()).toEqual([]);
    });

    test("isolates a bad policy from the others", async () => {
      await put(greeting("bad", "never", "("), greeting("good", "hello"));
      expect(await words()).toEqual([`${mark}-good: hello`]);
      await put(greeting("bad", "now"));
      expect(await words()).toEqual([`${mark}-bad: now`, `${mark}-good: hello`]);
    });

    test("answers needs in their order: found, absent, and a list", async () => {
      await put(configMap("a", "web"));
      const needs = [getNeed("none"), getNeed("a"), listNeed(`mark=${mark}`, 10)];
      const facts = await harness.source.fetch(needs, unhurried());
      expect(facts).toHaveLength(3);
      expect(facts[0]).toEqual({ absent: "NotFound" });
      expect(facts[1]).toMatchObject({ complete: true, found: { metadata: { name: `${mark}-a` } } });
      expect(namesIn(facts[2])).toEqual([`${mark}-a`]);
    });

    test("returns the whole object with its version to a need, live or not", async () => {
      await put(configMap("a", "web", "7"));
      for (const live of [false, true]) {
        const fact = await one(getNeed("a", live));
        expect(fact).toMatchObject({ complete: true, found: { kind: "ConfigMap", data: { value: "7" } } });
        expect("found" in fact && stringAt(fact.found, "metadata", "resourceVersion")).toMatch(/./);
      }
    });

    test("lists by selector, truncates at the limit, and reports the truncation", async () => {
      await put(configMap("a", "web"), configMap("b", "web"), configMap("c", "db"));
      const within = `app in (${mark}-web, ${mark}-db)`;
      expect(namesIn(await one(listNeed(within, 10)))).toEqual([`${mark}-a`, `${mark}-b`, `${mark}-c`]);
      expect(namesIn(await one(listNeed(`app=${mark}-web`, 10)))).toEqual([`${mark}-a`, `${mark}-b`]);
      expect(namesIn(await one(listNeed(`mark=${mark},app!=${mark}-web`, 10)))).toEqual([`${mark}-c`]);
      expect(namesIn(await one(listNeed(`mark=${mark},app notin (${mark}-db)`, 10)))).toEqual([
        `${mark}-a`,
        `${mark}-b`,
      ]);
      expect(namesIn(await one(listNeed(`mark=${mark},!app`, 10)))).toEqual([]);
      expect(await one(listNeed(`mark=${mark}`, 3))).toMatchObject({ complete: true });
      const cut = await one(listNeed(`mark=${mark}`, 2));
      expect(cut).toMatchObject({ complete: false });
      expect(namesIn(cut)).toHaveLength(2);
    });

    test("continues a list from a continue token", async () => {
      await put(configMap("a", "web"), configMap("b", "web"), configMap("c", "db"));
      const need = listNeed(`mark=${mark}`, 2);
      const first = await one(need);
      const next = "found" in first ? first.next : undefined;
      if (next === undefined || !("list" in need)) throw new Error("no place to go on");
      const second = await one({ ...need, list: { ...need.list, continue: next } });
      expect(second).toMatchObject({ complete: true });
      expect(second).not.toHaveProperty("next");
      expect([...namesIn(first), ...namesIn(second)]).toEqual([`${mark}-a`, `${mark}-b`, `${mark}-c`]);
    });

    test("fails a list whose selector is invalid, and continues", async () => {
      expect(await one(listNeed("app in (", 1))).toHaveProperty("failed");
      expect(await one(getNeed("none"))).toEqual({ absent: "NotFound" });
    });

    test("commits a creation that rests on an absence once, and then shows the object", async () => {
      const commit = commitOf("ledger", "1", undefined);
      expect(await harness.source.commit(commit, unhurried())).toBe("done");
      made.push(refOf(commit.object));
      expect(await harness.source.commit(commit, unhurried())).toBe("conflict");
      const fact = await one(getNeed("ledger", true));
      expect(fact).toMatchObject({ found: { data: { value: "1" } } });
    });

    test("commits only on the version that was read", async () => {
      await put(configMap("ledger", "web", "1"));
      const version = await versionOf("ledger");
      expect(await harness.source.commit(commitOf("ledger", "2", version), unhurried())).toBe("done");
      expect(await harness.source.commit(commitOf("ledger", "3", version), unhurried())).toBe("conflict");
      const fact = await one(getNeed("ledger", true));
      expect(fact).toMatchObject({ found: { data: { value: "2" } } });
      const next = await versionOf("ledger");
      expect(next).not.toBe(version);
      expect(await harness.source.commit(commitOf("ledger", "3", next), unhurried())).toBe("done");
    });

    test("reports a conflict when the object that a commit rests on is gone", async () => {
      await put(configMap("ledger", "web"));
      const version = await versionOf("ledger");
      await remove(configMap("ledger", "web"));
      expect(await harness.source.commit(commitOf("ledger", "2", version), unhurried())).toBe("conflict");
    });

    test("shows in the view what a commit wrote", async () => {
      await put(configMap("ledger", "web"));
      const version = await versionOf("ledger");
      const written = commitOf("ledger", "2", version, "db");
      expect(await harness.source.commit(written, unhurried())).toBe("done");
      await harness.caughtUp();
      expect(appNames("db")).toEqual([`${mark}-ledger`]);
    });

    test("evaluates a supposition without changing the source", async () => {
      await put(configMap("a", "web"), greeting("p", "hello"));
      const { assembly } = harness.source;
      const gone = { resource: "configmaps", namespace: "default", name: `${mark}-a`, object: undefined };
      const other = { resource: GREETINGS, namespace: "", name: `${mark}-q`, object: greeting("q", "hi") };
      const view = assembly.view.with([gone]);
      const supposed = assembly.with([gone, other]);
      expect(view.get("configmaps", "default", `${mark}-a`)).toBeUndefined();
      expect([...view.lookup("configmaps", "app", `${mark}-web`)]).toEqual([]);
      expect(await words(supposed)).toEqual([`${mark}-p: hello`, `${mark}-q: hi`]);
      expect(appNames("web")).toEqual([`${mark}-a`]);
      expect(await words()).toEqual([`${mark}-p: hello`]);
    });

    test("never shows a partial change to an evaluation", async () => {
      const wrong: string[] = [];
      let looks = 0;
      let going = true;
      const watcher = (async () => {
        for (; going; looks++) {
          const { assembly } = harness.source;
          const standing = ours(
            [...assembly.policies("greeter")].map(({ ref }) => ({ metadata: { name: ref.name } })),
          );
          const evaluated = (await words()).map((line) => line.split(":")[0] ?? "");
          const listed = ours(assembly.view.list(GREETINGS));
          if (String(standing) !== String(evaluated))
            wrong.push(`evaluated ${evaluated}, standing ${standing}`);
          if (String(standing) !== String(listed)) wrong.push(`listed ${listed}, standing ${standing}`);
          for (const app of ["web", "db"]) {
            const filtered = [...assembly.view.list("configmaps")].filter(
              (object) => labelsOf(object)?.["app"] === `${mark}-${app}`,
            );
            if (String(ours(filtered)) !== String(appNames(app)))
              wrong.push(`index ${app}: ${appNames(app)}`);
          }
          await new Promise((resolve) => setImmediate(resolve));
        }
      })();
      for (let i = 0; i < 5; i++) {
        const app = i % 2 === 0 ? "web" : "db";
        await put(greeting(`p${i}`, "hello"), configMap("a", app), configMap(`b${i}`, app));
      }
      await remove(greeting("p0", "hello"));
      going = false;
      await watcher;
      expect(looks).toBeGreaterThan(0);
      expect(wrong).toEqual([]);
    });

    /** The output of an evaluation, for this test's policies alone. */
    async function words(assembly: Assembly = harness.source.assembly): Promise<string[]> {
      const { findings } = await evaluated(assembly);
      return findings
        .map(({ message }) => message)
        .filter((message) => message.startsWith(mark))
        .sort();
    }

    async function versionOf(suffix: string): Promise<string> {
      const fact = await one(getNeed(suffix, true));
      return "found" in fact ? (stringAt(fact.found, "metadata", "resourceVersion") ?? "") : "";
    }

    function commitOf(
      suffix: string,
      data: string,
      resourceVersion: string | undefined,
      app = "web",
    ): Commit {
      const rests = getNeed(suffix, true);
      const object = configMap(suffix, app, data);
      return {
        resource: "configmaps",
        namespace: "default",
        name: nameOf(object),
        object,
        resourceVersion,
        rests,
      };
    }
  });
}

function unhurried(): Deadline {
  return { remaining: () => 10_000, signal: new AbortController().signal };
}

function refOf(object: JsonObject): ObjectRef {
  const namespace = stringAt(object, "metadata", "namespace");
  return {
    apiVersion: stringAt(object, "apiVersion") ?? "",
    kind: stringAt(object, "kind") ?? "",
    name: nameOf(object),
    ...(namespace === undefined ? {} : { namespace }),
  };
}

function namesIn(fact: Fact | undefined): string[] {
  if (fact === undefined || !("found" in fact)) return [];
  return listAt({ items: fact.found }, "items")
    .map((item: Json) => stringAt(item, "metadata", "name") ?? "")
    .sort();
}

async function evaluated(assembly: Assembly): Promise<Evaluation> {
  const request: AdmissionRequest = {
    uid: randomUUID(),
    kind: { group: "", version: "v1", kind: "ConfigMap" },
    resource: { group: "", version: "v1", resource: "configmaps" },
    subResource: "",
    name: "asked",
    namespace: "default",
    operation: "CREATE",
    userInfo: { username: "alice", groups: [] },
    object: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "asked", namespace: "default" } },
    oldObject: undefined,
    dryRun: false,
    options: undefined,
  };
  return evaluate(
    { assembly, phase: "validate", hooks: assembly.hooks, request, now: Date.now() },
    {
      fetch: async (needs) => needs.map(() => ({ failed: "nothing is asked here" })),
      commit: async () => "done",
      expired: () => false,
    },
  );
}
