import { allow, type Decision } from "../../../core/evaluate/decision.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import { listAt, stringAt } from "../../../core/json.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { isNodeIdentity } from "../../../core/kubernetes/principals.ts";
import { whyNot } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { Context, TraceEntry } from "../../../core/module/module.ts";
import type { Path } from "../../../core/path.ts";
import { type NodeRecord, RECORD, recordedValue, recordText } from "../ledger/record.ts";
import { admittedAtRegistration } from "../rules/label-keys.ts";
import { matchesName, type NodeRule } from "../rules/rule.ts";
import type { RuleIndex } from "../rules/rule-index.ts";
import { isOpenshift } from "../settings.ts";
import { type Desired, desiredOf } from "./desired.ts";
import { keyAndEffect, taintId, taintsOn, writtenTaint } from "./difference.ts";

/**
 * Sets what all rules require on a node at its creation, so that no client ever sees it without. It never refuses a node, nor sets what
 * the API server would refuse: labels that NodeRestriction denies to a node that registers itself are left to the controller, and the
 * startup taint keeps pods off the node until then.
 */
export function mutateNode(context: Context, index: RuleIndex): Decision {
  const { request, object: draft, view, trace } = context;
  const name = nameOf(draft.object);
  if (request.object === undefined || name === "" || !index.settings.enabled) return allow();
  if (trace !== undefined) for (const entry of traceOf(index, draft.object)) trace(entry);
  const desired = desiredOf(draft.object, index);
  const registersItself = isNodeIdentity(request.userInfo) !== undefined;
  const openshift = isOpenshift(index.settings, view);
  const findings: Finding[] = [];
  const deferred = new Set<string>();
  const labels = new Map<string, string>();
  for (const [key, { value, rule }] of desired.labels) {
    const path = ["metadata", "labels", key];
    if (registersItself && !admittedAtRegistration(key, openshift)) {
      deferred.add(key);
      findings.push(deferral(key, value, rule));
    } else if (draft.get(...path) === value) findings.push(finding(rule, "label", "same", `${key}=${value}`));
    else if (draft.set(path, value, undefined)) {
      labels.set(key, rule.id);
      findings.push(finding(rule, "label", "applied", `${key}=${value}`, path));
    }
  }
  const record = { labels, ...annotationsAndTaints(context, desired, findings) };
  if (deferred.size > 0 || desired.startup !== undefined) addStartup(context, index, desired, findings);
  writeRecord(context, record);
  return allow(findings);
}

function annotationsAndTaints(
  { object: draft }: Context,
  desired: Desired,
  findings: Finding[],
): Pick<NodeRecord, "annotations" | "taints"> {
  const annotations = new Map();
  for (const [key, { value, rule }] of desired.annotations) {
    const path = ["metadata", "annotations", key];
    if (draft.get(...path) === value || !draft.set(path, value, undefined)) continue;
    annotations.set(key, { rule: rule.id, value: recordedValue(value) });
    findings.push(finding(rule, "annotation", "applied", key, path));
  }
  const taints = new Map();
  const present = taintsOn(draft.object);
  for (const [key, { value: taint, rule }] of desired.taints) {
    const from = present.get(key);
    if (from === taint.value) continue;
    const done =
      from === undefined
        ? draft.append(["spec", "taints"], writtenTaint(taint), undefined)
        : draft.set(["spec", "taints", indexOfTaint(draft.object, key), "value"], taint.value, undefined);
    if (!done) continue;
    taints.set(key, { rule: rule.id, value: taint.value });
    findings.push(finding(rule, "taint", "applied", `${key} ${taint.value}`.trim(), ["spec", "taints"]));
  }
  return { annotations, taints };
}

function indexOfTaint(node: Parameters<typeof taintsOn>[0], id: string): number {
  // Of two with one id, which the API server refuses anyway, `taintsOn` has the last.
  return listAt(node, "spec", "taints").findLastIndex((taint) => taintId(taint) === id);
}

const STARTUP_EFFECT = "NoSchedule";

function addStartup(
  { object: draft }: Context,
  { settings }: RuleIndex,
  { startup }: Desired,
  findings: Finding[],
): void {
  const key = settings.startupTaint;
  for (const id of taintsOn(draft.object).keys())
    if (id === `${key}:${STARTUP_EFFECT}` || keyAndEffect(id).key === key) return;
  if (!draft.append(["spec", "taints"], { key, effect: STARTUP_EFFECT }, undefined)) return;
  if (startup !== undefined)
    findings.push(finding(startup, "startup-taint", "applied", key, ["spec", "taints"]));
}

/** A record that came with the request is not usher's: it is replaced, or removed. */
function writeRecord({ object: draft }: Context, record: NodeRecord): void {
  const path = ["metadata", "annotations", RECORD];
  const text = recordText(record);
  if (text !== undefined) draft.set(path, text, undefined);
  else if (stringAt(draft.object, ...path) !== undefined) draft.remove(path, undefined);
}

/** The edits carry no finding of their own: the record on the node names the rule of each key, and stays current as rules change. */
function finding(
  rule: NodeRule,
  name: string,
  outcome: Finding["outcome"],
  message: string,
  path?: Path,
): Finding {
  return {
    policy: rule.ref,
    rule: name,
    outcome,
    message: `${name} ${message}`,
    ...(path === undefined ? {} : { path }),
  };
}

function deferral(key: string, value: string, rule: NodeRule): Finding {
  return {
    policy: rule.ref,
    rule: "deferred",
    outcome: "skipped",
    code: "USHER-L02",
    message: `label ${key}=${value} can't be set while a node registers itself; the controller sets it right after`,
    audit: { key: "deferred", value: key },
  };
}

/** Every rule, and why it matches this node or does not. */
function* traceOf(index: RuleIndex, node: Parameters<typeof nameOf>[0]): Iterable<TraceEntry> {
  const name = nameOf(node);
  const labels = labelsOf(node);
  for (const rule of index.rules) {
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
