import type { Edit } from "../decision/draft.ts";
import { type FindingOutcome, type ModuleFinding, messageWithCode } from "../decision/finding.ts";
import { describeNeed, type Need } from "../decision/need.ts";
import type { PatchOperation } from "../decision/patch.ts";
import type { AdmissionRequest } from "../decision/request.ts";
import { auditOf } from "../evaluate/audit.ts";
import type { Evaluation, ModuleTrace } from "../evaluate/evaluate-hooks.ts";
import { responseOf } from "../evaluate/response.ts";
import { stringAt } from "../json.ts";
import { type Hook, hookWants } from "../module/hook.ts";
import { fieldPath } from "../path.ts";
import { policyKey, policyName } from "../policy/policy-ref.ts";
import { PROVENANCE } from "../provenance/annotation.ts";

/** The result of one object; the JSON output is exactly this. */
export interface ReviewResult {
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
  };
  /** `patch`: allowed, with changes. */
  readonly verdict: "allow" | "patch" | "deny";
  /** Against the object with the API server's defaults. */
  readonly patch: readonly PatchOperation[];
  readonly changes: readonly ReviewChange[];
  readonly violations: readonly ReviewViolation[];
  readonly warnings: readonly string[];
  /** Audit annotations, with the keys that they have after the webhook's name. */
  readonly audit: Readonly<Record<string, string>>;
  /** Facts that the decision needed and the source does not contain. */
  readonly unknown: readonly string[];
  /** Of a workload that is allowed: why the pods that its controller creates of the template are denied. */
  readonly podViolations?: readonly ReviewViolation[];
  /** With --trace: every policy. */
  readonly trace?: readonly Traced[];
  /** With --trace: why no policy was evaluated. */
  readonly untouched?: string;
}

export interface ReviewChange {
  readonly module: string;
  readonly policy: string;
  readonly change: "add" | "change" | "remove";
  readonly path: string;
  /** In readable form: `nodeSelector pool=etcd` */
  readonly message: string;
}

export interface ReviewViolation {
  readonly module: string;
  readonly policy: string;
  readonly rule: string;
  readonly code: string;
  readonly path: string;
  readonly message: string;
}

interface Traced {
  readonly module: string;
  readonly kind: string;
  readonly policy: string;
  /** One rule of the policy. @default the policy as a whole */
  readonly rule?: string;
  readonly applies: ModuleTrace["applies"];
  readonly why: string;
  /** `+` added, `=` already set, `!` skipped. */
  readonly parts: readonly string[];
}

export interface ReviewSummary {
  /** Including patched objects. */
  readonly allowed: number;
  readonly unchanged: number;
  readonly patched: number;
  readonly denied: number;
}

/** Whether the object is denied, or every pod of it will be. */
export function isRefused({ verdict, podViolations = [] }: ReviewResult): boolean {
  return verdict === "deny" || podViolations.length > 0;
}

export function summaryOf(results: readonly ReviewResult[]): ReviewSummary {
  const count = (wanted: ReviewResult["verdict"]) =>
    results.filter(({ verdict }) => verdict === wanted).length;
  const [unchanged, patched, denied] = [count("allow"), count("patch"), count("deny")];
  return { allowed: unchanged + patched, unchanged, patched, denied };
}

/** The result of one request, from its phases. With `traced`, all hooks, it includes the trace. */
export function resultOf(
  request: AdmissionRequest,
  phases: readonly Evaluation[],
  patch: ReviewResult["patch"],
  traced: readonly Hook[] | undefined,
): ReviewResult {
  const findings = phases.flatMap((phase) => phase.findings);
  const denials = phases.flatMap((phase) => phase.denials);
  const denied = denials.length > 0;
  const trace = traced === undefined ? undefined : traceOf(phases, findings);
  return {
    object: nameOf(request),
    verdict: denied ? "deny" : patch.length > 0 ? "patch" : "allow",
    patch: denied ? [] : patch,
    changes: denied ? [] : changesIn(phases, patch),
    violations: violationsOf(findings, denials),
    warnings: [...new Set(phases.flatMap((phase) => responseOf(phase).warnings))],
    audit: auditOf(findings, denied),
    unknown: [...new Set(phases.flatMap((phase) => phase.unknown.map(nameOfNeed)))],
    ...(trace === undefined ? {} : { trace }),
    ...(trace?.length === 0 ? { untouched: untouched(request, phases, traced ?? []) } : {}),
  };
}

function nameOf(request: AdmissionRequest): ReviewResult["object"] {
  const { group, version, kind } = request.kind;
  const generated = stringAt(request.object, "metadata", "generateName") ?? "";
  return {
    apiVersion: group === "" ? version : `${group}/${version}`,
    kind,
    // A request for a Namespace has its own name as namespace, although the kind is cluster-scoped.
    namespace: group === "" && kind === "Namespace" ? "" : request.namespace,
    name: request.name === "" ? `${generated}*` : request.name,
  };
}

/** If no policy changed anything, only the provenance annotation was corrected. */
function changesIn(phases: readonly Evaluation[], patch: ReviewResult["patch"]): ReviewResult["changes"] {
  const changes = phases.flatMap(changesOf);
  return changes.length > 0 || patch.length === 0 ? changes : [CORRECTED];
}

const CORRECTED: ReviewChange = {
  module: "usher",
  policy: "",
  change: "change",
  path: fieldPath(["metadata", "annotations", PROVENANCE]),
  message: "provenance annotation corrected",
};

/** All violations of modules that deny; a module that denies without one, as after an internal error, is reported by its denial. */
function violationsOf(
  findings: readonly ModuleFinding[],
  denials: Evaluation["denials"],
): ReviewResult["violations"] {
  const denying = new Set(denials.map(({ module }) => module));
  const violated = findings.filter(({ module, outcome }) => outcome === "violated" && denying.has(module));
  const unexplained = denials.filter(({ module }) => !violated.some((one) => one.module === module));
  return [
    ...violated.map(({ module, policy, rule, code, path, message, verbatim }) => ({
      module,
      policy: policy === undefined ? "" : policyName(policy),
      rule,
      code: code ?? "",
      path: path === undefined ? "" : fieldPath(path),
      // Another component's text belongs to a cause, which has its field separately.
      message: verbatim && path !== undefined ? `${fieldPath(path)}: ${message}` : message,
    })),
    ...unexplained.map(({ module, reason, message }) => {
      const [shown = "", code = ""] = /\s*\((USHER-[A-Z]\d+)\)$/.exec(message) ?? [];
      const text = message.slice(0, message.length - shown.length);
      return { module, policy: "", rule: reason, code, path: "", message: text };
    }),
  ];
}

/** `Namespace shop` in place of the resource name. */
function nameOfNeed(need: Need): string {
  return describeNeed(need)
    .replace(/^namespaces /, "Namespace ")
    .replace(/^nodes /, "Node ")
    .replace(/^pods /, "Pod ");
}

/** How a change is written in tables. */
export const SIGNS = { add: "+", change: "~", remove: "-" } as const;

/** The changes of the mutating phase, in the order of the edits. One finding may explain several edits; it is one change. */
function changesOf({ draft, phase }: Evaluation): ReviewChange[] {
  if (phase !== "mutate") return [];
  const seen = new Set<ModuleFinding>();
  return draft.edits.flatMap((edit) => {
    const { finding, path } = edit;
    if (finding === undefined || seen.has(finding)) return [];
    seen.add(finding);
    const policy = finding.policy === undefined ? "" : policyName(finding.policy);
    const { module, message } = finding;
    return [{ module, policy, change: kindOf(edit), path: fieldPath(path), message }];
  });
}

/** The change of each finding with an edit. */
function changeKinds(phases: readonly Evaluation[]): ReadonlyMap<ModuleFinding, ReviewChange["change"]> {
  const kinds = new Map<ModuleFinding, ReviewChange["change"]>();
  for (const { draft } of phases)
    for (const edit of draft.edits)
      if (edit.finding !== undefined && !kinds.has(edit.finding)) kinds.set(edit.finding, kindOf(edit));
  return kinds;
}

/** A list that is written whole for some elements adds these. */
function kindOf({ kind, provenance, existed, previous, slot, path }: Edit): ReviewChange["change"] {
  if (kind === "remove") return "remove";
  const replaces = existed && previous !== undefined && previous !== null && slot.length === path.length;
  return kind === "set" && provenance?.adds === undefined && replaces ? "change" : "add";
}

/** Every policy, and every rule that a module reports by itself, once, with its changes. */
function traceOf(phases: readonly Evaluation[], findings: readonly ModuleFinding[]): Traced[] {
  const entries = new Map<string, ModuleTrace>();
  for (const entry of phases.flatMap((phase) => phase.trace)) {
    const key = `${entry.module} ${policyKey(entry.policy)} ${entry.rule ?? ""}`;
    const known = entries.get(key);
    // Both phases report a policy: the phase in which it had an effect explains it.
    if (known === undefined || (known.applies === "not" && entry.applies !== "not")) entries.set(key, entry);
  }
  const kinds = changeKinds(phases);
  return [...entries.values()].map(({ module, policy, rule, applies, why }) => {
    const key = policyKey(policy);
    const mine = findings.filter(
      (one) =>
        rule === undefined &&
        one.module === module &&
        one.policy !== undefined &&
        policyKey(one.policy) === key,
    );
    return {
      module,
      kind: policy.kind,
      policy: policyName(policy),
      ...(rule === undefined ? {} : { rule }),
      applies: verdictOf(applies, mine),
      why,
      parts: mine.filter((one) => one.rule !== "selection").map((one) => partOf(one, kinds.get(one))),
    };
  });
}

/** On UPDATE a policy may restore its injections, although it adds nothing new. */
function verdictOf(selected: ModuleTrace["applies"], findings: readonly ModuleFinding[]): Traced["applies"] {
  const some = (...wanted: readonly FindingOutcome[]) =>
    findings.some(({ outcome }) => wanted.includes(outcome));
  if (some("violated")) return "refuses";
  if (selected === "not") return some("applied", "same") ? "applies" : "not";
  return selected === "applies" && some("skipped") ? "partly" : selected;
}

function partOf(finding: ModuleFinding, change: ReviewChange["change"] = "add"): string {
  const { outcome } = finding;
  const sign = outcome === "applied" ? SIGNS[change] : outcome === "same" ? "=" : "!";
  return `${sign} ${messageWithCode(finding)}`;
}

/** Why no policy was evaluated. */
function untouched(request: AdmissionRequest, phases: readonly Evaluation[], hooks: readonly Hook[]): string {
  const asked = new Set(phases.flatMap((phase) => phase.asked.map(({ module }) => module)));
  if (asked.size > 0) return `no policy was evaluated; modules: ${[...asked].join(", ")}`;
  const { operation, namespace, kind, resource, subResource } = request;
  if (hooks.some(({ namespaces: _, ...anywhere }) => hookWants(anywhere, request))) {
    return `no policy was evaluated: namespace ${namespace} is exempt`;
  }
  const what = subResource === "" ? kind.kind : `${resource.resource}/${subResource}`;
  return `no policy was evaluated: no module handles ${operation} of ${what}`;
}
