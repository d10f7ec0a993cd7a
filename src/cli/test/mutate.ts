import { isObject, type JsonObject } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import { fieldPath, type Path } from "../../core/path.ts";
import { checkObject } from "../../core/policy/check.ts";
import { settingMutants } from "../../core/policy/mutants.ts";
import { problem } from "../../core/policy/problem.ts";
import { mismatches } from "../../core/suite/expectation.ts";
import type { Equivalent } from "../../core/suite/suite.ts";
import { readText } from "../../files/reader/bytes.ts";
import { linesOf, readManifests } from "../../files/reader/read-documents.ts";
import { entriesOf, writtenPath } from "../../files/source/entry.ts";
import { scanAll } from "../../files/source/tree.ts";
import type { InputProblem } from "../input/input.ts";
import { shownPath } from "./read-suites.ts";
import { type CaseResult, judgeCase, policiesOf, type SuiteResult, type SuiteStage } from "./run-suite.ts";

/** A mutant, and the case that noticed it. */
export interface MutantResult {
  /** `ClusterPodSchedulingPolicy/etcd-pool` */
  readonly policy: string;
  readonly path: Path;
  readonly change: string;
  readonly file: string;
  readonly line: number;
  /** The name of the first case that fails with the mutant. */
  readonly noticedBy?: string;
  /** Why no case can notice it, from the suite. */
  readonly equivalent?: string;
}

export interface MutationResult {
  readonly mutants: readonly MutantResult[];
  /** Entries of `equivalent` that are not needed. */
  readonly problems: readonly InputProblem[];
}

/** One mutant, before any case has seen it. */
interface Attempt {
  readonly policy: string;
  readonly stage: SuiteStage;
  readonly path: Path;
  readonly change: string;
  readonly place: FileLine | undefined;
  readonly world: () => SuiteStage["world"] | Promise<SuiteStage["world"]>;
}

interface FileLine {
  readonly file: string;
  readonly line: number;
}

/** Weakens each policy under test in every way that its module declares, and checks whether a case notices. */
export async function mutate(
  { file, cases, stages }: SuiteResult,
  progress: (done: number, total: number) => void,
): Promise<MutationResult> {
  const attempts: Attempt[] = [];
  for (const stage of stages) attempts.push(...(await attemptsOf(stage, file.suite.policies)));
  const results = new Map<string, MutantResult>();
  for (const [done, { stage, policy, path, change, place, world }] of attempts.entries()) {
    progress(done, attempts.length);
    const key = JSON.stringify([policy, path, change]);
    if (results.get(key)?.noticedBy !== undefined) continue;
    const noticedBy = await firstFailure(cases, stage, await world());
    const { file: where = "", line = 0 } = place ?? {};
    const found = noticedBy === undefined ? {} : { noticedBy };
    results.set(key, { policy, path, change, file: where, line, ...found });
  }
  return accept([...results.values()], file.suite.equivalent, (path, message) => ({
    place: file.place([]),
    problem: problem(path, message),
  }));
}

async function firstFailure(
  cases: readonly CaseResult[],
  stage: SuiteStage,
  world: SuiteStage["world"],
): Promise<string | undefined> {
  for (const { one, ready } of cases) {
    if (ready === undefined || ready.stage !== stage || one.expect === undefined) continue;
    const { result, decision } = await judgeCase(ready, world, false);
    if (mismatches(one.expect, decision).length > 0 || result.unknown.length > 0) return one.name;
  }
  return undefined;
}

/** Marks the mutants that the suite accepts. An entry that no mutant needs is an error. */
function accept(
  mutants: readonly MutantResult[],
  accepted: readonly Equivalent[],
  fail: (path: Path, message: string) => InputProblem,
): MutationResult {
  const isMeant = ({ policy, path = "", change }: Equivalent, one: MutantResult) =>
    policy === one.policy && path === fieldPath(one.path) && (change ?? one.change) === one.change;
  const problems = accepted.flatMap((entry, i) => {
    const meant = mutants.filter((one) => isMeant(entry, one));
    if (meant.some(({ noticedBy }) => noticedBy === undefined)) return [];
    const [first] = meant;
    return fail(
      ["equivalent", i],
      first === undefined
        ? "names no mutant: remove the entry"
        : `is not needed: the case ${JSON.stringify(first.noticedBy)} notices the mutant; remove the entry`,
    );
  });
  return {
    problems,
    mutants: mutants.map((one) => {
      const entry = one.noticedBy === undefined ? accepted.find((each) => isMeant(each, one)) : undefined;
      return entry === undefined ? one : { ...one, equivalent: entry.reason };
    }),
  };
}

/** Noticed mutants of those that count; 1 if there are none. */
export function scoreOf(mutants: readonly MutantResult[]): number {
  const counted = mutants.filter(({ equivalent }) => equivalent === undefined);
  return counted.length === 0
    ? 1
    : counted.filter(({ noticedBy }) => noticedBy !== undefined).length / counted.length;
}

/**
 * Mutants of the policies under test, of other objects that modules weaken, and of settings. One that usher would
 * refuse is skipped.
 */
async function attemptsOf(stage: SuiteStage, named: readonly string[] | undefined): Promise<Attempt[]> {
  const { assembly } = stage.world;
  const isNamed = (key: string) => named?.includes(key) ?? true;
  const places = await Places.read(stage);
  const attempts: Attempt[] = [];
  for (const {
    name: module,
    kinds,
    mutations = [],
    settings: schema,
    settingMutations,
  } of assembly.modules) {
    const policies = policiesOf(stage).filter(({ kind }) => kinds.includes(kind));
    for (const { resource, mutants } of mutations) {
      const kind = policies.find((one) => one.resource === resource)?.kind;
      const objects =
        kind === undefined
          ? [...assembly.view.list(resource)].map((object) => {
              const [name, namespace] = [nameOf(object), namespaceOf(object)];
              return { key: `${titleOf(resource)}/${name}`, resource, namespace, name };
            })
          : policies.filter((one) => one.resource === resource);
      for (const { key, namespace, name } of objects) {
        const stored =
          isNamed(key) || kind === undefined
            ? await storedObject(stage, resource, namespace, name)
            : undefined;
        if (stored === undefined) continue;
        for (const { path, change, object } of mutants(stored)) {
          const isRefused =
            object !== undefined &&
            kind !== undefined &&
            checkObject(kind, object, assembly.view, assembly).some(({ severity }) => severity === "error");
          if (isRefused) continue;
          const place = places.locate(`${resource} ${namespace}/${name}`, path);
          const world = () => stage.world.with([{ resource, namespace, name, object }]);
          attempts.push({ policy: key, stage, path, change, place, world });
        }
      }
    }
    const settings = assembly.installation.settings?.[module];
    if (settings === undefined || settingMutations === undefined || !isNamed(CONFIGURATION)) continue;
    for (const { path, change, object = {} } of settingMutants(settingMutations, settings, module))
      if (schema?.safeParse(object).success)
        attempts.push({
          policy: CONFIGURATION,
          stage,
          path,
          change,
          place: places.locate(CONFIGURATION, path),
          world: () => stage.reconfigured(module, object),
        });
  }
  return attempts;
}

/** How settings are named among policies. */
const CONFIGURATION = "UsherConfiguration";

async function storedObject(
  { world }: SuiteStage,
  resource: string,
  namespace: string,
  name: string,
): Promise<JsonObject | undefined> {
  const get = { resource, ...(namespace === "" ? {} : { namespace }), name };
  const [fact] = await world.fetch([{ get, live: true }]);
  const found = fact !== undefined && "found" in fact && isObject(fact.found) ? fact.found : undefined;
  return found ?? world.assembly.view.get(resource, namespace, name);
}

/** `Namespace` of `namespaces`. */
function titleOf(resource: string): string {
  const [plural = ""] = resource.split(".");
  return `${plural.charAt(0).toUpperCase()}${plural.slice(1).replace(/s$/, "")}`;
}

/** An object of a source as it is written. */
interface Written {
  readonly label: string;
  readonly line: (field: Path) => number;
}

/** The positions of the objects of a source, and of its configuration. */
class Places {
  readonly #written = new Map<string, Written>();

  static async read({ files, config, resources }: SuiteStage): Promise<Places> {
    const places = new Places();
    const { files: found } = await scanAll(files);
    for (const { path } of found) {
      const { text } = await readText(path);
      const lines = linesOf(text);
      for (const { value, document, path: inside } of readManifests(text).manifests)
        for (const entry of entriesOf(value, { file: path, document, path: inside, ordinal: 0 }, resources)
          .entries)
          places.#written.set(`${entry.resource.name} ${entry.namespace}/${entry.name}`, {
            label: shownPath(path),
            line: (field) => lines(document, [...entry.place.path, ...writtenPath(entry, field)]),
          });
    }
    if (config !== undefined) {
      const lines = linesOf((await readText(config)).text);
      places.#written.set(CONFIGURATION, { label: shownPath(config), line: (field) => lines(0, field) });
    }
    return places;
  }

  locate(key: string, field: Path): FileLine | undefined {
    const found = this.#written.get(key);
    if (found === undefined) return undefined;
    return { file: found.label, line: found.line(field) };
  }
}
