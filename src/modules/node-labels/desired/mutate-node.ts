import { allow, need, type Result } from "../../../core/decision/decision.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import { listAt, stringAt } from "../../../core/json.ts";
import { admittedAtRegistration } from "../../../core/kubernetes/node-label-keys.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { isNodeIdentity } from "../../../core/kubernetes/principals.ts";
import { whyNot } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { Context, TraceEntry } from "../../../core/module/module.ts";
import type { Path } from "../../../core/path.ts";
import { fetchedLedger, ledgerNeed } from "../ledger/ledger.ts";
import { type NodeRecord, RECORD, recordedValue, recordText } from "../ledger/record.ts";
import { type LostKey, lostKeysOf } from "../rules/conflicts.ts";
import { compareRules, type NodeRule } from "../rules/rule.ts";
import type { RuleIndex } from "../rules/rule-index.ts";
import { matchesName } from "../rules/rule-patterns.ts";
import { isOpenshift } from "../settings.ts";
import { describeChange, describeEntry, describeLost } from "./describe.ts";
import { type Desired, desiredOf } from "./desired.ts";
import { keyAndEffect, type NodeChange, taintId, taintsOn, writtenTaint } from "./difference.ts";

/**
 * Sets the values of all rules on a node at its creation, so that no client ever sees it without them. It never refuses a
 * node, nor sets what the API server would refuse: labels that NodeRestriction denies to a node that registers itself
 * are left to the controller. So are taints that the ledger does not have: they would stay forever if their rule were
 * deleted now. The startup taint keeps pods off the node until then.
 */
export function mutateNode(context: Context, index: RuleIndex): Result {
  const { request, draft, view, trace } = context;
  const name = nameOf(draft.object);
  if (request.object === undefined || name === "") return allow();
  const desired = desiredOf(draft.object, index);
  const ledger = ledgerNeed(context.installation.namespace);
  const hasLedger = [...desired.taints.values()].some(({ rule }) => rule.isStored);
  if (hasLedger && context.facts.of(ledger) === undefined) return need(ledger);
  if (trace !== undefined) for (const entry of traceOf(index, draft.object)) trace(entry);
  const registersItself = isNodeIdentity(request.userInfo) !== undefined;
  const openshift = isOpenshift(index.settings, view);
  const findings = lostKeysOf(desired.rules).map(lost);
  const labels = new Map<string, string>();
  for (const [key, { value, rule }] of desired.labels) {
    const path = ["metadata", "labels", key];
    const from = stringAt(draft.object, ...path);
    if (registersItself && !admittedAtRegistration(key, openshift)) {
      findings.push(deferral(rule, describeEntry("label", key, value), key, "while a node registers itself"));
    } else if (from === value) findings.push(same(rule, "label", key, value));
    else if (draft.set(path, value, applied(rule, "label", key, from, value, path))) labels.set(key, rule.id);
  }
  const record = { labels, ...annotationsAndTaints(context, desired, findings) };
  const isIncomplete = findings.some(({ rule }) => rule === DEFERRED);
  if (isIncomplete || desired.startup !== undefined) addStartup(context, index, desired);
  writeRecord(context, record);
  return allow(findings);
}

function annotationsAndTaints(
  { draft, facts, installation }: Context,
  desired: Desired,
  findings: Finding[],
): Pick<NodeRecord, "annotations" | "taints"> {
  const annotations = new Map();
  for (const [key, { value, rule }] of desired.annotations) {
    const path = ["metadata", "annotations", key];
    const from = stringAt(draft.object, ...path);
    if (from === value) findings.push(same(rule, "annotation", key, value));
    else if (draft.set(path, value, applied(rule, "annotation", key, from, value, path)))
      annotations.set(key, { rule: rule.id, value: recordedValue(value) });
  }
  const taints = new Map();
  const ledger = fetchedLedger({ facts }, installation.namespace);
  const present = taintsOn(draft.object);
  for (const [key, { value: taint, rule }] of desired.taints) {
    const from = present.get(key);
    if (from === taint.value) {
      findings.push(same(rule, "taint", key, taint.value));
      continue;
    }
    if (rule.isStored && ledger?.includes(taint, nameOf(draft.object)) !== true) {
      const entry = describeEntry("taint", key, taint.value);
      findings.push(deferral(rule, entry, key, "before it is in the ConfigMap usher-node-labels"));
      continue;
    }
    const finding = applied(rule, "taint", key, from, taint.value, ["spec", "taints"]);
    const done =
      from === undefined
        ? draft.append(["spec", "taints"], writtenTaint(taint), finding)
        : draft.set(["spec", "taints", indexOfTaint(draft.object, key), "value"], taint.value, finding);
    if (done) taints.set(key, { rule: rule.id, value: taint.value });
  }
  return { annotations, taints };
}

function indexOfTaint(node: Parameters<typeof taintsOn>[0], id: string): number {
  // Of two with one id, which the API server refuses anyway, `taintsOn` has the last.
  return listAt(node, "spec", "taints").findLastIndex((taint) => taintId(taint) === id);
}

const STARTUP_EFFECT = "NoSchedule";

function addStartup({ draft }: Context, { settings }: RuleIndex, { startup }: Desired): void {
  const key = settings.startupTaint;
  for (const id of taintsOn(draft.object).keys()) if (keyAndEffect(id).key === key) return;
  const finding: Finding = {
    ...(startup === undefined ? {} : { policy: startup.ref }),
    rule: "startup-taint",
    outcome: "applied",
    message: `startup ${describeEntry("taint", `${key}:${STARTUP_EFFECT}`, "")}`,
    path: ["spec", "taints"],
    recordedByModule: true,
  };
  draft.append(["spec", "taints"], { key, effect: STARTUP_EFFECT }, finding);
}

const FORGED_RECORD: Finding = {
  rule: "record",
  outcome: "applied",
  message: `annotation ${RECORD}: only usher writes it`,
};

/** A record in the request is not usher's: it is replaced, or removed. */
function writeRecord({ draft }: Context, record: NodeRecord): void {
  const path = ["metadata", "annotations", RECORD];
  const text = recordText(record);
  if (text !== undefined) draft.set(path, text, undefined);
  else if (stringAt(draft.object, ...path) !== undefined) draft.remove(path, FORGED_RECORD);
}

/** The record on the node names the rule of each key, and stays current as rules change; so provenance omits these. */
function applied(
  rule: NodeRule,
  what: NodeChange["what"],
  key: string,
  from: string | undefined,
  to: string,
  path: Path,
): Finding {
  const change = from === undefined ? "add" : "change";
  const message = describeChange({ what, change, key, ...(from === undefined ? {} : { from }), to });
  return { policy: rule.ref, rule: what, outcome: "applied", message, path, recordedByModule: true };
}

function same(rule: NodeRule, what: NodeChange["what"], key: string, value: string): Finding {
  return { policy: rule.ref, rule: what, outcome: "same", message: describeEntry(what, key, value) };
}

function lost(key: LostKey): Finding {
  const message = describeLost(key);
  return { policy: key.rule.ref, rule: "conflict", outcome: "skipped", code: "USHER-L01", message };
}

const DEFERRED = "deferred";

/** `entry` is left to the controller. */
function deferral(rule: NodeRule, entry: string, key: string, when: string): Finding {
  return {
    policy: rule.ref,
    rule: DEFERRED,
    outcome: "skipped",
    code: "USHER-L02",
    message: `${entry} can't be set ${when}; the controller sets it right after`,
    audit: { key: "deferred", value: key },
  };
}

/** Every rule in the order of precedence, and why it matches this node or does not. */
function* traceOf(index: RuleIndex, node: Parameters<typeof nameOf>[0]): Iterable<TraceEntry> {
  const name = nameOf(node);
  const labels = labelsOf(node);
  for (const rule of [...index.rules].sort(compareRules)) {
    const policy = rule.ref;
    if (index.matches(rule, name, labels)) {
      const why = rule.patterns.length === 0 ? "its nodeSelector matches" : `the name ${name} matches`;
      yield { policy, applies: "applies", why };
    } else if (!matchesName(rule, name))
      yield { policy, applies: "not", why: `no pattern matches the whole name ${name}` };
    else {
      const why = rule.selector === undefined ? undefined : whyNot(rule.selector, labels);
      yield {
        policy,
        applies: "not",
        why: `nodeSelector: ${why ?? "labels that rules set or OwnedLabels own count as absent"}`,
      };
    }
  }
}
