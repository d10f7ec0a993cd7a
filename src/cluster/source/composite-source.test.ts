import { expect, test } from "vitest";
import { GREETINGS, GROUP, greeter } from "../../../test/conformance/modules.ts";
import type { Commit } from "../../core/decision/decision.ts";
import type { Need } from "../../core/decision/need.ts";
import type { Deadline, Source } from "../../core/evaluate/source.ts";
import { Gates } from "../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../core/installation/installation.ts";
import { Assembly } from "../../core/module/assembly.ts";
import { composeSources, type Owns, shareOf } from "./composite-source.ts";

const DEADLINE: Deadline = { remaining: () => 1_000, signal: new AbortController().signal };

function sourceOf(name: string, assembly: Assembly, state = { ready: true, stopped: false }): Source {
  return {
    assembly,
    get ready() {
      return state.ready;
    },
    fetch: async (needs) =>
      needs.map((need) => ({ found: { by: name, need: JSON.stringify(need) }, complete: true })),
    commit: async () => ({ failed: name }),
    stop: async () => {
      state.stopped = true;
    },
  };
}

const policies: Owns = (resource) => resource === GREETINGS;
const others: Owns = (resource) => resource !== GREETINGS;

function rig() {
  const whole = new Assembly([greeter], DEFAULT_INSTALLATION, new Gates([]));
  const [files, cluster] = [shareOf(whole, policies), shareOf(whole, others)];
  const state = { ready: false, stopped: false };
  const source = composeSources(whole, [
    { source: sourceOf("files", files), owns: policies },
    { source: sourceOf("cluster", cluster, state), owns: others },
  ]);
  return { whole, files, cluster, state, source };
}

const greeting = {
  resource: GREETINGS,
  namespace: "",
  name: "p",
  object: { apiVersion: `${GROUP}/v1`, kind: "Greeting", metadata: { name: "p" }, spec: { word: "hi" } },
};
const configMap = {
  resource: "configmaps",
  namespace: "shop",
  name: "a",
  object: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "shop" } },
};

test("each source changes its own resources in the shared view, and no others", () => {
  const { whole, files, cluster } = rig();
  expect(files.apply([greeting, configMap]).map(({ name }) => name)).toEqual(["p"]);
  expect(whole.view.served("configmaps")).toBe(false);
  cluster.serve(GREETINGS);
  cluster.serve("configmaps");
  expect(whole.view.served("configmaps")).toBe(true);
  expect(cluster.apply([{ ...greeting, object: undefined }, configMap]).map(({ name }) => name)).toEqual([
    "a",
  ]);
  expect(whole.view.count(GREETINGS)).toBe(1);
  expect([...files.policies("greeter")].map(({ ref }) => ref.name)).toEqual(["p"]);
  expect(files.view.get("configmaps", "shop", "a")).toBeDefined();
  expect(files.evaluator("greeter")).toBe(whole.evaluator("greeter"));
  expect(files.hooks).toBe(whole.hooks);
  expect([files.wants("configmaps"), files.wants(GREETINGS), files.wants("secrets")]).toEqual([
    false,
    true,
    false,
  ]);
  expect(files.with([{ ...greeting, object: undefined }]).view.count(GREETINGS)).toBe(0);
  expect(whole.view.count(GREETINGS)).toBe(1);
});

test("needs go to the source of their resource, and facts keep the order of the needs", async () => {
  const { source } = rig();
  const needs: Need[] = [
    { get: { resource: "configmaps", namespace: "shop", name: "a" } },
    { get: { resource: GREETINGS, name: "p" } },
    { list: { resource: "nodes" }, limit: 1, share: 1 },
    { access: { user: "bob" } },
    { list: { resource: GREETINGS }, limit: 1, share: 1 },
  ];
  const facts = await source.fetch(needs, DEADLINE);
  expect(facts).toEqual(
    needs.map((need, i) => ({
      found: { by: i === 1 || i === 4 ? "files" : "cluster", need: JSON.stringify(need) },
      complete: true,
    })),
  );
});

test("a commit goes to the source of its resource", async () => {
  const { source } = rig();
  const commit: Commit = {
    resource: "configmaps",
    namespace: "shop",
    name: "a",
    object: {},
    resourceVersion: undefined,
    rests: { access: {} },
  };
  expect(await source.commit(commit, DEADLINE)).toEqual({ failed: "cluster" });
  expect(await source.commit({ ...commit, resource: GREETINGS }, DEADLINE)).toEqual({ failed: "files" });
});

test("has the ages of all sources; files have none", () => {
  const whole = new Assembly([greeter], DEFAULT_INSTALLATION, new Gates([]));
  const ages = () => [{ resource: "nodes", ms: 3 }];
  const source = composeSources(whole, [
    { source: sourceOf("files", whole), owns: policies },
    { source: { ...sourceOf("cluster", whole), ages }, owns: others },
  ]);
  expect(source.ages?.()).toEqual([{ resource: "nodes", ms: 3 }]);
});

test("is ready when all sources are, and stops all", async () => {
  const { source, state } = rig();
  expect(source.ready).toBe(false);
  state.ready = true;
  expect(source.ready).toBe(true);
  await source.stop();
  expect(state.stopped).toBe(true);
});
