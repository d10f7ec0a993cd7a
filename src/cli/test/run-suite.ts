import type { AdmissionRequest } from "../../core/decision/request.ts";
import { World } from "../../core/foresight/world.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { Assembly } from "../../core/module/assembly.ts";
import type { Path } from "../../core/path.ts";
import { policyKey } from "../../core/policy/policy-ref.ts";
import { type Problem, problem } from "../../core/policy/problem.ts";
import type { ReviewResult } from "../../core/review/result.ts";
import { reviewWithPods, userInfoFor } from "../../core/review/review.ts";
import { didYouMean } from "../../core/suggest.ts";
import {
  ChangedFields,
  decisionOf,
  type Mismatch,
  mismatches,
  type ObservedDecision,
  reconciledDecision,
  withoutEffect,
} from "../../core/suite/expectation.ts";
import { type Case, type FromFile, operationOf } from "../../core/suite/suite.ts";
import { entryOf } from "../../files/source/entry.ts";
import { Resources } from "../../files/source/resources.ts";
import { ApiTypes } from "../input/api-types.ts";
import type { InputProblem, Place } from "../input/input.ts";
import { Shape } from "../input/shape.ts";
import type { Io } from "../io.ts";
import { SILENT, type Terminal } from "../output/terminal.ts";
import { reviewDeadline } from "../review/deadline.ts";
import { emitted } from "../review/emit.ts";
import { Requests } from "../review/request.ts";
import { openRead } from "../source/open.ts";
import { assembleFor } from "../source/source.ts";
import { fileOf, NamedFiles, type SuiteFile } from "./read-suites.ts";

/** A source of policies, opened for its cases. */
export interface SuiteStage {
  readonly files: readonly string[];
  readonly world: World;
  readonly resources: Resources;
  readonly requests: (one: Case, old: JsonObject | undefined) => Promise<Requests>;
  readonly shape: Shape;
  readonly types: ApiTypes;
  /** The file of the configuration. */
  readonly config: string | undefined;
  /** The same world with other settings of a module. */
  readonly reconfigured: (module: string, settings: JsonObject) => Promise<World>;
  readonly stop: () => Promise<void>;
}

/** A prepared case, evaluated for each mutant. */
export interface ReadyCase {
  readonly one: Case;
  readonly stage: SuiteStage;
  readonly request: AdmissionRequest;
  readonly written: JsonObject | undefined;
  readonly now: number;
}

/** The result of one case. */
export interface CaseResult {
  readonly one: Case;
  readonly line: number;
  readonly ready?: ReadyCase;
  /** Absent if the case could not be evaluated. */
  readonly result?: ReviewResult;
  readonly decision?: ObservedDecision;
  readonly mismatches: readonly Mismatch[];
  /** Why the case is an error: it could not be evaluated, or can't fail. */
  readonly problems: readonly InputProblem[];
  readonly ms: number;
}

export interface SuiteResult {
  readonly file: SuiteFile;
  readonly cases: readonly CaseResult[];
  readonly stages: readonly SuiteStage[];
  /** Of the suite as a whole: a source that can't be read, a policy that no case touches. */
  readonly problems: readonly InputProblem[];
}

/** Runs suites one after the other. Sources that several suites or cases name are opened once. */
export class SuiteRunner {
  readonly #io: Io;
  readonly #screen: Terminal;
  readonly #release: { readonly kubernetesVersion?: string };
  readonly #files = new NamedFiles();
  readonly #stages = new Map<string, Promise<SuiteStage | undefined>>();
  readonly #extended = new Map<SuiteFile, Map<SuiteStage, SuiteStage>>();

  /** @param release The release of Kubernetes in place of that of each suite's configuration. */
  constructor(io: Io, screen: Terminal, release?: string) {
    this.#io = io;
    this.#screen = screen;
    this.#release = release === undefined ? {} : { kubernetesVersion: release };
  }

  async stop(): Promise<void> {
    for (const stage of this.#stages.values()) await (await stage)?.stop();
  }

  async run(file: SuiteFile, progress: (done: number) => void): Promise<SuiteResult> {
    const problems: InputProblem[] = [];
    const cases: CaseResult[] = [];
    const stages = new Set<SuiteStage>();
    for (const [i, one] of file.suite.cases.entries()) {
      progress(i);
      const stage = await this.#stageOf(file, one, problems);
      // The problem of a source is that of all cases with it.
      if (stage === undefined) continue;
      stages.add(stage);
      cases.push(await this.#judge(file, one, stage));
    }
    if (problems.length > 0) return { file, cases, stages: [...stages], problems: unique(problems) };
    const judged = withEffects(file, cases);
    problems.push(...(await this.#untouched(file, judged, [...stages])));
    return { file, cases: judged, stages: [...stages], problems };
  }

  async #stageOf(
    file: SuiteFile,
    { source, index }: Case,
    problems: InputProblem[],
  ): Promise<SuiteStage | undefined> {
    const at: Path = source === undefined ? ["source"] : ["cases", index, "source"];
    const wrong = (path: Path, one: Problem) =>
      problems.push({ place: file.place([]), problem: { ...one, path } });
    const paths: string[] = [];
    for (const [i, name] of (source ?? file.suite.source).entries()) {
      const found = await fileOf(file, name);
      if (typeof found === "string") paths.push(found);
      else wrong([...at, i], found);
    }
    const { config } = file.suite;
    const settings = config === undefined ? undefined : await fileOf(file, config);
    if (settings !== undefined && typeof settings !== "string") wrong(["config"], settings);
    if (problems.length > 0) return undefined;
    const key = JSON.stringify([paths, settings]);
    const known = this.#stages.get(key) ?? this.#open(paths, settings as string | undefined);
    this.#stages.set(key, known);
    const stage = await known;
    if (stage === undefined) wrong(at, problem([], "has errors, which are reported above: no case is run"));
    else if (policiesOf(stage).length === 0 && settings === undefined)
      wrong(at, problem([], "has no policies: nothing is tested"));
    return stage === undefined || problems.length > 0 ? undefined : this.#withObjects(file, stage, problems);
  }

  /** The stage of one suite: with the objects that it adds. */
  #withObjects(file: SuiteFile, stage: SuiteStage, problems: InputProblem[]): SuiteStage | undefined {
    const { objects } = file.suite;
    if (objects.length === 0) return stage;
    const known = this.#extended.get(file)?.get(stage);
    if (known !== undefined) return known;
    const changes = objects.flatMap((object, i) => {
      const { shape, resources, types, world } = stage;
      const shaped = shape.problems(object);
      const wrong = shaped.length > 0 ? shaped : shape.mistakes(object, world.assembly.view, types);
      const { entry } = entryOf(object, { file: "", document: 0, path: [], ordinal: 0 }, resources);
      for (const one of wrong)
        problems.push({ place: file.place(["objects", i]), problem: { ...one, severity: "error" } });
      if (entry === undefined) return [];
      return [
        { resource: entry.resource.name, namespace: entry.namespace, name: entry.name, object: entry.object },
      ];
    });
    if (problems.length > 0) return undefined;
    const extended: SuiteStage = {
      ...stage,
      world: stage.world.with(changes),
      reconfigured: async (...settings) => (await stage.reconfigured(...settings)).with(changes),
    };
    const all = this.#extended.get(file) ?? new Map<SuiteStage, SuiteStage>();
    this.#extended.set(file, all.set(stage, extended));
    return extended;
  }

  async #open(paths: readonly string[], config: string | undefined): Promise<SuiteStage | undefined> {
    const configured = config === undefined ? {} : { config };
    const options = { source: paths, strict: true, ...configured, ...this.#release };
    const assembly = await assembleFor(options, this.#io);
    const { source, faulty, stop } = await openRead(options, assembly, this.#screen, { objectsOnly: true });
    if (faulty) {
      await stop();
      return undefined;
    }
    const { modules, installation, view } = source.assembly;
    const resources = new Resources(modules, installation.workloads.all);
    return {
      files: paths,
      world: new World(source.assembly, (needs) => source.fetch(needs, reviewDeadline()), new Map()),
      resources,
      requests: (one, old) =>
        Requests.open(
          {
            namespace: one.namespace,
            user: userInfoFor(one.user ?? "kubernetes-admin", one.groups ?? []),
            operation: operationOf(one) === "UPDATE" ? "UPDATE" : "CREATE",
            old: old === undefined ? [] : [{ object: old, place: NOWHERE, line: () => 1 }],
          },
          source,
          resources,
        ),
      shape: new Shape(resources, source.assembly),
      types: await ApiTypes.load(view.serverVersion),
      config,
      reconfigured: async (module, settings) => {
        const configured = { ...installation, settings: { ...installation.settings, [module]: settings } };
        const other = new Assembly(modules, configured, assembly.gates);
        // Problems of the files were reported when they were first read.
        const opened = await openRead(options, other, SILENT, { objectsOnly: true });
        await opened.stop();
        return new World(
          opened.source.assembly,
          (needs) => opened.source.fetch(needs, reviewDeadline()),
          new Map(),
        );
      },
      stop,
    };
  }

  async #judge(file: SuiteFile, one: Case, stage: SuiteStage): Promise<CaseResult> {
    const started = performance.now();
    const base = { one, line: file.line(["cases", one.index]), mismatches: [] };
    const ready = await this.#ready(file, one, stage);
    if ("problems" in ready) return { ...base, problems: ready.problems, ms: performance.now() - started };
    const { result, decision } = await judgeCase(ready, stage.world, true);
    const ms = performance.now() - started;
    const problems = result.unknown.map((name) =>
      caseProblem(file, one, [], `the decision needs ${name}, which the source does not have`),
    );
    const { expect } = one;
    if (expect === undefined) return { ...base, ready, result, decision, problems, ms };
    if (decision.verdict === "unjudged" && expect.verdict !== "unjudged")
      problems.push(
        caseProblem(
          file,
          one,
          ["expect", "verdict"],
          `${result.untouched ?? "no policy was evaluated"}: the case can't fail`,
          "write verdict: unjudged if that is the point",
        ),
      );
    for (const [i, code] of (expect.codes ?? []).entries()) {
      const known = stage.world.assembly.modules.flatMap(({ codes = [] }) =>
        codes.map((known) => known.code),
      );
      if (!known.includes(code) && !code.startsWith("USHER-E"))
        problems.push(
          caseProblem(file, one, ["expect", "codes", i], `${code} is not a code`, didYouMean(code, known)),
        );
    }
    return { ...base, ready, result, decision, problems, mismatches: mismatches(expect, decision), ms };
  }

  /** The request of a case, or the problems of its objects. */
  async #ready(
    file: SuiteFile,
    one: Case,
    stage: SuiteStage,
  ): Promise<ReadyCase | { readonly problems: readonly InputProblem[] }> {
    const object = await this.#object(file, one, stage, "object");
    if ("problems" in object) return object;
    const old =
      one.old === undefined && one.oldFrom === undefined
        ? undefined
        : await this.#object(file, one, stage, "old");
    if (old !== undefined && "problems" in old) return old;
    if (object.value["kind"] === "AdmissionReview") {
      const field = (["user", "groups", "operation", "namespace", "old", "oldFrom"] as const).find(
        (name) => one[name] !== undefined,
      );
      if (field !== undefined)
        return {
          problems: [
            caseProblem(file, one, [field], "has no effect: a recorded AdmissionReview says it itself"),
          ],
        };
    }
    if (one.operation === "RECONCILE" && object.value["kind"] !== "Node")
      return {
        problems: [
          caseProblem(file, one, ["operation"], "RECONCILE is for nodes: controllers change no other kind"),
        ],
      };
    const asked = await (await stage.requests(one, old?.value)).of({ object: object.value });
    if ("problem" in asked) return { problems: [{ place: object.place, problem: asked.problem }] };
    const isDelete = one.operation === "DELETE";
    const request: AdmissionRequest = isDelete
      ? { ...asked.request, operation: "DELETE", object: undefined, oldObject: asked.request.object }
      : asked.request;
    return {
      one,
      stage,
      request,
      written: isDelete ? undefined : asked.written,
      now: one.time === undefined ? Date.now() : Date.parse(one.time),
    };
  }

  async #object(
    file: SuiteFile,
    one: Case,
    { shape, types, world }: SuiteStage,
    field: "object" | "old",
  ): Promise<
    { readonly value: JsonObject; readonly place: Place } | { readonly problems: readonly InputProblem[] }
  > {
    const written = one[field];
    const from = one[`${field}From`];
    const found =
      written !== undefined
        ? { value: written as JsonObject, place: file.place(["cases", one.index, field]) }
        : from === undefined
          ? undefined
          : await this.#selected(file, one, from, `${field}From`);
    if (found === undefined) return { problems: [] };
    if ("problems" in found) return found;
    const wrong = shape.problems(found.value);
    const mistakes =
      wrong.length > 0 || found.value["kind"] === "AdmissionReview"
        ? wrong
        : shape.mistakes(found.value, world.assembly.view, types);
    if (mistakes.length === 0) return found;
    return {
      problems: mistakes.map((mistake) => ({
        place: found.place,
        problem: { ...mistake, severity: "error" },
      })),
    };
  }

  /** The one object of a file that a case names. */
  async #selected(
    file: SuiteFile,
    one: Case,
    from: FromFile,
    field: string,
  ): Promise<
    { readonly value: JsonObject; readonly place: Place } | { readonly problems: readonly InputProblem[] }
  > {
    const fail = (path: Path, message: string, hint?: string) => ({
      problems: [caseProblem(file, one, [field, ...path], message, hint)],
    });
    const path = await fileOf(file, from.file);
    if (typeof path !== "string") return fail(["file"], path.message, path.hint);
    const objects = await this.#files.objects(path);
    if (!Array.isArray(objects)) return { problems: [objects as InputProblem] };
    const selected = objects.filter(
      ({ value }) =>
        isObject(value) &&
        (from.kind ?? stringAt(value, "kind")) === stringAt(value, "kind") &&
        (from.name === undefined || from.name === nameIn(value)) &&
        (from.namespace === undefined || from.namespace === namespaceIn(value)),
    );
    const [first] = selected;
    const names = objects.map(
      ({ value }) => `${stringAt(value, "kind") ?? "?"} ${nameIn(value as JsonObject)}`,
    );
    const shown = names.slice(0, 5).join(", ");
    if (first === undefined) return fail([], `no object of ${from.file} is meant: the file has ${shown}`);
    if (selected.length > 1)
      return fail([], `${selected.length} objects of ${from.file} are meant`, "add kind, namespace or name");
    return { value: first.value as JsonObject, place: first.place };
  }

  /** Policies under test that no case touches: a case passes with and without them. */
  async #untouched(
    file: SuiteFile,
    results: readonly CaseResult[],
    stages: readonly SuiteStage[],
  ): Promise<InputProblem[]> {
    const policies = new Map<
      string,
      {
        readonly stage: SuiteStage;
        readonly resource: string;
        readonly namespace: string;
        readonly name: string;
      }[]
    >();
    for (const stage of stages)
      for (const one of policiesOf(stage))
        policies.set(one.key, [...(policies.get(one.key) ?? []), { stage, ...one }]);
    const problems: InputProblem[] = [];
    const { policies: named } = file.suite;
    for (const [i, name] of (named ?? []).entries())
      if (!policies.has(name)) {
        const hint =
          didYouMean(name, [...policies.keys()]) ??
          `policies of the source: ${[...policies.keys()].slice(0, 5).join(", ")}`;
        problems.push({
          place: file.place([]),
          problem: problem(["policies", i], `the source has no ${name}`, hint),
        });
      }
    const applied = new Set(
      results.flatMap(({ result }) =>
        (result?.trace ?? [])
          .filter(({ applies }) => applies !== "not" && applies !== "failed")
          .map(({ kind, policy }) => `${kind}/${policy}`),
      ),
    );
    for (const [key, places] of policies) {
      if (applied.has(key) || (named !== undefined && !named.includes(key))) continue;
      let isTouched = false;
      for (const { stage, resource, namespace, name } of places) {
        const without = stage.world.with([{ resource, namespace, name, object: undefined }]);
        for (const { ready, decision } of results) {
          if (isTouched || ready === undefined || ready.stage !== stage || decision === undefined) continue;
          const other = await judgeCase(ready, without, false);
          isTouched = JSON.stringify(other.decision) !== JSON.stringify(decision);
        }
      }
      if (!isTouched)
        problems.push({
          place: file.place([]),
          problem: problem(
            ["cases"],
            `no case touches ${key}`,
            "add a case that it applies to, or list the policies under test in policies",
          ),
        });
    }
    return problems;
  }
}

const NOWHERE: Place = { input: { name: "", text: "" }, document: 0, path: [] };

/** The policies of a source. */
export function policiesOf({ world, resources }: SuiteStage) {
  const { assembly } = world;
  return assembly.modules.flatMap(({ name: module, kinds }) =>
    [...assembly.policies(module)].flatMap(({ ref }) => {
      const kind = kinds.find((one) => one.kind === ref.kind);
      if (kind === undefined) return [];
      const { name: resource } = resources.of(`${kind.group}/${kind.versions[0]?.name}`, kind.kind);
      return [{ key: policyKey(ref), kind, resource, namespace: ref.namespace ?? "", name: ref.name }];
    }),
  );
}

/** A node in a world, after the changes of controllers. */
function reconcileCase(
  { written = {} }: ReadyCase,
  world: World,
): { readonly result: ReviewResult; readonly decision: ObservedDecision } {
  const name = nameIn(written);
  const after = world.with([{ resource: "nodes", namespace: "", name, object: written }]).reconciled();
  const decision = reconciledDecision(written, after.get("nodes", "", name) ?? {});
  const object = { apiVersion: "v1", kind: "Node", namespace: "", name };
  const verdict = decision.verdict === "patch" ? "patch" : "allow";
  const nothing = { patch: [], changes: [], violations: [], warnings: [], audit: {}, unknown: [] };
  return {
    result: { object, verdict, ...nothing, untouched: "controllers were asked, not webhooks" },
    decision,
  };
}

/** Evaluates a case in a world: that of its stage, or one with a mutant. */
export async function judgeCase(
  ready: ReadyCase,
  world: World,
  trace: boolean,
): Promise<{ readonly result: ReviewResult; readonly decision: ObservedDecision }> {
  const { one, request, written, now } = ready;
  if (one.operation === "RECONCILE") return reconcileCase(ready, world);
  // A draft edits in place.
  const { result, evaluation, phases } = await reviewWithPods(structuredClone(request), world, {
    trace,
    now,
  });
  const changed = written === undefined ? undefined : emitted(written, evaluation.draft.edits);
  return { result, decision: decisionOf(result, phases, written, changed) };
}

/** Adds the parts of an expectation without effect: known once all cases of a suite were evaluated. */
function withEffects(file: SuiteFile, cases: readonly CaseResult[]): CaseResult[] {
  const changed = new ChangedFields();
  for (const { decision } of cases) if (decision !== undefined) changed.add(decision);
  return cases.map((result) => {
    const { one, decision } = result;
    if (one.expect === undefined || decision === undefined || result.problems.length > 0) return result;
    const idle = withoutEffect(one.expect, decision, changed);
    const problems = idle.map((found) =>
      caseProblem(file, one, ["expect", ...found.path], found.message, found.hint),
    );
    return { ...result, problems };
  });
}

function caseProblem(
  file: SuiteFile,
  { index }: Case,
  path: Path,
  message: string,
  hint?: string,
): InputProblem {
  return { place: file.place([]), problem: problem(["cases", index, ...path], message, hint) };
}

function unique(problems: readonly InputProblem[]): InputProblem[] {
  const keys = new Set<string>();
  return problems.filter((one) => {
    const key =
      "problem" in one ? JSON.stringify([one.problem.path, one.problem.message]) : JSON.stringify(one);
    return !keys.has(key) && keys.add(key);
  });
}

function nameIn(value: JsonObject): string {
  const inner = reviewed(value);
  return stringAt(inner, "metadata", "name") ?? stringAt(value, "request", "name") ?? "";
}

function namespaceIn(value: JsonObject): string | undefined {
  return stringAt(reviewed(value), "metadata", "namespace") ?? stringAt(value, "request", "namespace");
}

/** The object of a recorded review. */
function reviewed(value: JsonObject): JsonObject {
  const request = value["request"];
  if (value["kind"] !== "AdmissionReview" || !isObject(request)) return value;
  return isObject(request["object"]) ? request["object"] : {};
}
