import { resourceName } from "../../../core/decision/request.ts";
import { isObject, type Json, type JsonObject, stringAt } from "../../../core/json.ts";
import {
  groupVersionOf,
  nameOf,
  namespaceOf,
  SERVER_METADATA,
  withoutMetadata,
} from "../../../core/kubernetes/object.ts";
import { isBuiltIn, type WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { CommandCall, CommandCode, CommandResult, CommandSteps } from "../../../core/module/command.ts";
import { readPages } from "../../../core/module/command-needs.ts";
import type { View } from "../../../core/view/view.ts";
import type { ScanArgs, ScanFlags } from "../declaration.ts";
import { RUNTIME_CLASSES } from "../os/runtime-class.ts";
import { isLevel, LEVEL_ERROR, type LevelVersion, minorOf, VERSION_ERROR } from "../security/policy.ts";
import { fixedManifest } from "./apply-fixes.ts";
import { type EvaluatedObject, evaluateObject, type ScanPolicies, shownName } from "./evaluated-workload.ts";
import { scanReport, scanShape } from "./report.ts";
import { workloadRows } from "./rows.ts";

type Call = CommandCall<ScanArgs, ScanFlags>;

/** Objects read at once. */
const PAGE = 500;

/** Evaluates workloads at a level and version, or the differences between two. Nothing is changed. */
export const scanCode: CommandCode<ScanArgs, ScanFlags> = {
  shape: scanShape,
  check: ({ flags: { policy, against, fix } }) => {
    for (const [flag, text] of [
      ["--policy", policy],
      ["--against", against],
    ] as const) {
      const wrong = text === undefined ? undefined : parsePolicy(text);
      if (wrong !== undefined && "wrong" in wrong) return `${flag} ${text}: ${wrong.wrong}`;
    }
    return fix === true && against !== undefined ? "--fix and --against are mutually exclusive" : undefined;
  },
  needsView: ({ args: { file } }) => file.length === 0,
  *run(call) {
    const policies = policiesOf(call);
    if ("wrong" in policies) return policies;
    const view = call.live ? yield* withRuntimeClasses(call.assembly.view) : call.assembly.view;
    const scan = new Scan(call, policies, view);
    const unread = yield* read(call, scan);
    if (call.flags.fix === true) return fixReport(scan, unread);
    return scanReport(workloadRows(scan.judged), { policies, unread, calledAs: call.calledAs });
  },
};

/** `restricted:v1.37`; without a version the latest. */
function parsePolicy(text: string): LevelVersion | { readonly wrong: string } {
  const [, level = "", version = "latest"] = /^([^:]*)(?::(.*))?$/s.exec(text) ?? [];
  if (!isLevel(level)) return { wrong: `level ${JSON.stringify(level)} ${LEVEL_ERROR}` };
  return minorOf(version) === undefined
    ? { wrong: `version ${JSON.stringify(version)} ${VERSION_ERROR}` }
    : { level, version };
}

function policiesOf({ flags, assembly }: Call): ScanPolicies | { readonly wrong: string } {
  const policy = parsePolicy(flags.policy);
  const against = flags.against === undefined ? undefined : parsePolicy(flags.against);
  if ("wrong" in policy) return policy;
  if (against !== undefined && "wrong" in against) return against;
  return { policy, against, newest: assembly.view.serverVersion?.effective.minor };
}

/** The results so far. */
class Scan {
  readonly judged: EvaluatedObject[] = [];
  /** With `--fix`: the output. */
  readonly manifests: JsonObject[] = [];
  /** Objects that violate the policy despite all fixes, with the reason. */
  readonly broken: string[] = [];
  readonly #call: Call;
  readonly #policies: ScanPolicies;
  readonly #view: View;

  constructor(call: Call, policies: ScanPolicies, view: View) {
    this.#call = call;
    this.#policies = policies;
    this.#view = view;
  }

  /** `whole`: of a file, which is printed whole. */
  add(object: JsonObject, workload: WorkloadKind | undefined, whole: boolean): void {
    const { flags, assembly, namespace } = this.#call;
    const table = assembly.installation.workloads;
    const own = namespaceOf(object);
    const inside = own === "" ? (namespace ?? "default") : own;
    if (namespace !== undefined && inside !== namespace) return;
    const judged =
      workload === undefined
        ? undefined
        : evaluateObject(object, workload, {
            policies: this.#policies,
            view: this.#view,
            table,
            namespace: inside,
          });
    if (judged !== undefined) this.judged.push(judged);
    if (flags.fix !== true) return;
    if (workload === undefined || judged === undefined || (!whole && judged.owner !== undefined)) {
      if (whole) this.manifests.push(object);
      return;
    }
    const { policy, newest } = this.#policies;
    const fixed = fixedManifest(object, workload, policy, newest);
    if (fixed.left.length > 0)
      this.broken.push(
        `${workload.kind} ${inside}/${shownName(object)}: no fix for ${fixed.left.join("; ")}`,
      );
    if (whole) this.manifests.push(fixed.object);
    else if (fixed.changed) this.manifests.push(withoutServerFields(fixed.object));
  }
}

/** A template's RuntimeClass may determine its OS. Without permission to read them, it is unknown. */
function* withRuntimeClasses(view: View): CommandSteps<View> {
  const resource = resourceName(RUNTIME_CLASSES);
  const [fact] = yield { need: [{ list: { resource }, limit: PAGE, share: 1 }] };
  const found = fact !== undefined && "found" in fact && Array.isArray(fact.found) ? fact.found : [];
  return view.with(
    found.filter(isObject).map((object) => ({ resource, namespace: "", name: nameOf(object), object })),
  );
}

/** Reads files, else every kind of the source; returns what could not be read. */
function* read(call: Call, scan: Scan): CommandSteps<string[]> {
  const { workloads } = call.assembly.installation;
  if (call.args.file.length > 0) {
    for (const { documents } of call.args.file)
      for (const object of documents.filter(isObject)) {
        const { group } = groupVersionOf(stringAt(object, "apiVersion"));
        scan.add(object, workloads.byKind(group, stringAt(object, "kind") ?? ""), true);
      }
    return [];
  }
  const unread: string[] = [];
  const where = call.namespace === undefined ? {} : { namespace: call.namespace };
  for (const [done, workload] of workloads.all.entries()) {
    const failure = yield* readPages({
      what: resourceName(workload),
      page: (token) => ({
        list: {
          resource: resourceName(workload),
          ...where,
          ...(token === undefined ? {} : { continue: token }),
        },
        limit: PAGE,
        share: 1,
      }),
      // biome-ignore lint/correctness/useYield: needs nothing more for an object.
      *take(objects) {
        for (const object of objects) scan.add(object, workload, false);
      },
      // A configured kind need not be installed.
      optional: !isBuiltIn(workload),
      progress: { doing: "scanning", things: "workload kinds", done, total: workloads.all.length },
    });
    if (failure !== undefined) unread.push(failure);
  }
  return unread;
}

function fixReport({ manifests, broken }: Scan, unread: readonly string[]): CommandResult {
  return {
    data: manifests as unknown as Json,
    manifests,
    errors: [...unread.map((reason) => `not scanned: ${reason}`), ...broken],
    exit: unread.length > 0 ? "failed" : broken.length > 0 ? "found" : "fine",
  };
}

/** A stored object as a manifest that can be applied: without fields that the API server sets. */
export function withoutServerFields(object: JsonObject): JsonObject {
  if (!isObject(object["metadata"])) return object;
  const { status: _status, apiVersion, kind, metadata, ...below } = withoutMetadata(object, SERVER_METADATA);
  return { apiVersion, kind, metadata, ...below };
}
