import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { needKey } from "../../core/decision/need.ts";
import { resourceName } from "../../core/decision/request.ts";
import { requestFor, storedWorkloads } from "../../core/foresight/stored-workloads.ts";
import { World } from "../../core/foresight/world.ts";
import { isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { nameOf, namespaceOf, WRITE_METADATA, withoutMetadata } from "../../core/kubernetes/object.ts";
import { readsOf } from "../../core/module/module.ts";
import { kindResource } from "../../core/policy/kind.ts";
import { PROVENANCE } from "../../core/provenance/annotation.ts";
import { reviewWithPods } from "../../core/review/review.ts";
import { decisionOf, expectationOf } from "../../core/suite/expectation.ts";
import { MAX_CASES, SUITE } from "../../core/suite/suite.ts";
import { type Configuration, readConfiguration } from "../configuration/configuration.ts";
import { CallError, EXIT } from "../exit.ts";
import { openWorld, PRIORITY_CLASSES, type WorldOptions } from "../foresight/open-world.ts";
import type { Io } from "../io.ts";
import { terminal } from "../output/terminal.ts";
import { yamlDocuments, yamlText } from "../output/yaml.ts";
import { emitted } from "../review/emit.ts";
import { isLive } from "../source/open.ts";

/**
 * Makes a suite of what policies decide about the workloads that exist: the policies and the objects that they need as one file, and a
 * case for each workload as it was before usher. Nothing is written to the cluster.
 */
export async function record(directory: string, options: WorldOptions, io: Io): Promise<number> {
  const screen = terminal(io, options);
  const files = await readdir(directory).catch(() => []);
  if (files.length > 0)
    throw new CallError(`--record ${directory}: the directory is not empty; name a new one`);
  const { world, partial, faulty, stop } = await openWorld(options, io, screen, {
    scheduling: false,
    asWebhook: true,
  });
  try {
    if (faulty) return EXIT.wrong;
    if (partial.length > 0) throw new CallError(`can't be read whole: ${partial.join(", ")}`, EXIT.failed);
    const needed = new Map<string, JsonObject>();
    const { assembly } = world;
    const recording = new World(
      assembly,
      async (needs) => {
        const facts = await world.fetch(needs);
        for (const [i, fact] of facts.entries()) {
          const need = needs[i];
          if (need === undefined || !("found" in fact)) continue;
          for (const one of [fact.found].flat().filter(isObject))
            if (stringAt(one, "kind") !== undefined)
              needed.set(`${needKey(need)} ${namespaceOf(one)}/${nameOf(one)}`, one);
        }
        return facts;
      },
      new Map(),
    );
    const priorityClasses = world.list(PRIORITY_CLASSES);
    const workloads = storedWorkloads(world, options.namespace);
    if (workloads.length === 0) throw new CallError("no workloads found: there is nothing to record");
    if (workloads.length > MAX_CASES)
      throw new CallError(
        `${workloads.length} workloads are too many for a suite: choose a namespace with -n`,
      );
    const cases: Json[] = [];
    for (const [done, { object, workload }] of workloads.entries()) {
      screen.progress("recording", "workloads", done, workloads.length);
      const request = requestFor(object, workload, { priorityClasses });
      const given = structuredClone(request.object) as JsonObject;
      const { result, evaluation, phases } = await reviewWithPods(
        { ...request, dryRun: false, object: structuredClone(given) },
        recording,
        { trace: false, now: Date.now() },
      );
      const decision = decisionOf(result, phases, given, emitted(given, evaluation.draft.edits));
      cases.push({
        name: `${workload.kind} ${namespaceOf(object)}/${nameOf(object)}`,
        object: given,
        expect: expectationOf(decision) as Json,
      });
    }
    screen.endProgress();
    const configuration = await configurationFor(options);
    const isConfigured = Object.keys(configuration).length > 0;
    const config = isConfigured ? { config: "usher.yaml" } : {};
    const suite = { ...SUITE, source: ["cluster.yaml"], ...config, cases };
    const objects = [...sourceObjects(world), ...needed.values()];
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, "cluster.yaml"), `${yamlDocuments(objects)}\n`);
    if (isConfigured) {
      const head = { apiVersion: "usher.dev/v1alpha1", kind: "UsherConfiguration" };
      await writeFile(join(directory, "usher.yaml"), `${yamlText({ ...head, spec: configuration })}\n`);
    }
    await writeFile(join(directory, "suite.yaml"), `${yamlText(suite)}\n`);
    const count = cases.length === 1 ? "1 case is" : `${cases.length} cases are`;
    screen.out(`${count} recorded in ${join(directory, "suite.yaml")}`);
    screen.note(`Run "${io.name} test ${directory}" to repeat them.`);
    return EXIT.fine;
  } finally {
    screen.endProgress();
    await stop();
  }
}

/** Modules, settings and gates decide as policies do: the suite has those that its cases were recorded with. */
async function configurationFor(options: WorldOptions): Promise<Configuration> {
  if (options.config !== undefined || !isLive(options)) return readConfiguration(options.config);
  const { installedConfiguration } = await import("../source/installed.ts");
  // Reading the cluster has reported it already.
  return installedConfiguration(options, { note: () => undefined, forbidden: "ask" });
}

/** Policies, and the objects that decisions depend on: nodes and namespaces. */
function sourceObjects({ assembly }: World): JsonObject[] {
  const kinds = assembly.modules.flatMap((module) =>
    module.kinds.map((kind) => ({
      resource: kindResource(kind),
      apiVersion: `${kind.group}/${kind.versions.find(({ storage }) => storage)?.name}`,
      kind: kind.kind,
    })),
  );
  const reads = readsOf(assembly)
    .filter(({ leaderOnly, presence }) => leaderOnly !== true && presence !== true)
    .map(({ group, version, kind, ...read }) => ({
      resource: resourceName({ group, ...read }),
      apiVersion: group === "" ? version : `${group}/${version}`,
      kind,
    }));
  const known = new Map([...reads, ...kinds].map((one) => [one.resource, one]));
  return [...known.values()].flatMap(({ resource, apiVersion, kind }) =>
    [...assembly.view.list(resource)].map((object) => ({ apiVersion, kind, ...withoutServerFields(object) })),
  );
}

/** Fields that the API server writes into every object, and fields that no decision depends on. */
function withoutServerFields({ status: _status, ...object }: JsonObject): JsonObject {
  const { metadata } = withoutMetadata(object, [...WRITE_METADATA, "uid"]);
  const rest = isObject(metadata) ? metadata : {};
  const { [PROVENANCE]: _provenance, ...annotations } = isObject(rest["annotations"])
    ? rest["annotations"]
    : {};
  const { annotations: _annotations, ...others } = rest;
  return { ...object, metadata: Object.keys(annotations).length === 0 ? others : { ...others, annotations } };
}
