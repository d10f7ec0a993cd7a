/**
 * Mistakes that the simulation must find: each replaces a text of the product while it is loaded. Found by random seeds
 * or by a plan; a mutant that is not found means that the simulation is blind there.
 */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly text: string;
  readonly by: string;
}

export const MUTANTS: readonly Mutant[] = [
  // Leader election.
  {
    name: "a lease is acquired before it has expired",
    file: "src/cluster/leader-election/lease-state.ts",
    text: 'holder === "" || now - since >= record.durationMs',
    by: 'holder === "" || now - since >= record.durationMs / 4',
  },
  {
    name: "a candidate writes the lease without the version that it has read",
    file: "src/cluster/leader-election/leader-election.ts",
    text: "const version = resourceVersion === undefined ? {} : { resourceVersion };",
    by: "const version = {};",
  },
  {
    name: "a leader leads until the lease expires, not until the renew deadline",
    file: "src/cluster/leader-election/lease-state.ts",
    text: "now - state.heldSince < state.times.renewDeadlineMs",
    by: "now - state.heldSince < 3 * state.times.durationMs",
  },
  {
    name: "a renewal counts from its answer",
    file: "src/cluster/leader-election/leader-election.ts",
    text: "this.#state = leaseWritten(this.#state, record, sent);",
    by: "this.#state = leaseWritten(this.#state, record, this.#clock() + 8_000);",
  },
  {
    name: "a lease with an unknown write is not read again",
    file: "src/cluster/leader-election/lease-state.ts",
    text: "return { ...state, observed: undefined };",
    by: "return state;",
  },
  // Workqueue and controller.
  {
    name: "a failed item is not retried",
    file: "src/cluster/controller/workqueue.ts",
    text: "this.addAfter(item, backoff.next(this.#clock.now()));",
    by: "backoff.next(this.#clock.now());",
  },
  {
    name: "an item that was added while it is processed is lost",
    file: "src/cluster/controller/workqueue.ts",
    text: "if (this.#running.has(id)) this.#dirty.add(id);\n    else this.#due.set(id, item);",
    by: "if (!this.#running.has(id)) this.#due.set(id, item);",
  },
  {
    name: "requeueAfter is ignored",
    file: "src/cluster/controller/workqueue.ts",
    text: "if (result.afterMs !== undefined) this.addAfter(item, result.afterMs);",
    by: "",
  },
  {
    name: "a conflict counts as done",
    file: "src/cluster/controller/planned-writes.ts",
    text: 'if (response === "conflict" || response.status === 409) return "conflict";',
    by: 'if (response === "conflict" || response.status === 409) return "done";',
  },
  {
    name: "a failed write counts as done",
    file: "src/cluster/controller/planned-writes.ts",
    text: 'return absent ? "conflict" : { failed: responseMessage(what, response) };',
    by: 'return absent ? "conflict" : "done";',
  },
  {
    name: "patches are not conditional",
    file: "src/cluster/controller/planned-writes.ts",
    text: "body: [...operations, guard(resourceVersion)],",
    by: "body: [...operations],",
  },
  {
    name: "a new leader does not reconcile existing objects",
    file: "src/modules/node-labels/reconcile/reconciler.ts",
    text: "yield* stepKeys(state.sweep.start({ view, index, pending: state.pending }));",
    by: "",
  },
  // Informers.
  {
    name: "a watch that is silent is not given up",
    file: "src/cluster/informers/reflector.ts",
    text: "idle = true;\n        close();",
    by: "idle = true;",
  },
  {
    name: "objects that were deleted before a relist stay in the view",
    file: "src/cluster/informers/reflector-state.ts",
    text: "return { ...NOTHING, changes: this.#known.endList(), synced: true };",
    by: "return { ...NOTHING, changes: [], synced: true };",
  },
  {
    name: "leader-only objects stay in the view after leading",
    file: "src/operator/controller/leader.ts",
    text: "source.cache.startLeading().then(",
    by: "Promise.resolve().then(",
  },
  // Ledger and commits.
  {
    name: "the ledger is written without the version that it was read with",
    file: "src/cluster/client/object-access.ts",
    text: "body: withIdentity(object, target, version),",
    by: "body: withIdentity(object, target, undefined),",
  },
  {
    name: "a place is released without reading the namespace",
    file: "src/modules/project-limit/ledger/settle.ts",
    text: "return need === undefined || hasNoNamespace(entry, left, stored, facts.of(need));",
    by: "return true;",
  },
  {
    name: "places are never released",
    file: "src/modules/project-limit/ledger/entry-ages.ts",
    text: "if (left <= 0) due.push(entry);",
    by: "if (left <= -1e9) due.push(entry);",
  },
  {
    name: "a place is released while its request may still create",
    file: "src/modules/project-limit/ledger/entry-ages.ts",
    text: "export const SETTLE_AFTER_MS = 35_000;",
    by: "export const SETTLE_AFTER_MS = 100;",
  },
  {
    name: "reservations of others do not count",
    file: "src/modules/project-limit/ledger/reserve.ts",
    text: "const used = usageOf(placesOf(subject, projects, others));",
    by: "const used = usageOf(placesOf(subject, projects, []));",
  },
  {
    name: "a commit with an unknown result counts as done",
    file: "src/cluster/commits/commit-batcher.ts",
    text: 'resolveAll(commits, typeof result === "object" ? result : "conflict");',
    by: 'resolveAll(commits, typeof result === "object" ? result : "done");',
  },
  {
    name: "commits that joined a conflicting batch count as done",
    file: "src/cluster/commits/commit-batcher.ts",
    text: 'resolveAll(this.#batch.splice(0), "conflict");\n    }',
    by: 'resolveAll(this.#batch.splice(0), "done");\n    }',
  },
  {
    name: "a batch that is not written is lost after a 429",
    file: "src/cluster/commits/commit-batcher.ts",
    text: "this.#batch = [...commits, ...this.#batch];\n      this.#schedule(result.retryDelayMs);",
    by: 'resolveAll(commits, "done");',
  },
  // Nodes.
  {
    name: "the whole list of taints is replaced",
    file: "src/modules/node-labels/desired/node-patch.ts",
    text: "if (found === undefined) list.push(taint);",
    by: "if (found === undefined) continue;",
  },
  {
    name: "owned labels are kept",
    file: "src/modules/node-labels/desired/difference.ts",
    text: "for (const { key, owners } of desired.unwanted) {",
    by: "for (const { key, owners } of [] as typeof desired.unwanted) {",
  },
  // Certificates and webhooks.
  {
    name: "the bundle has only the certificate in use",
    file: "src/operator/certificates/certificate-record.ts",
    text: "const all = [current?.ca, next?.ca, previous, ...more]",
    by: "const all = [current?.ca]",
  },
  {
    name: "the next certificate is used before API servers trust it",
    file: "src/operator/certificates/certificate-plan.ts",
    text: 'trust === "no webhooks" || (trust !== "not yet" && trust.forMs >= TRUST_MS)',
    by: "true",
  },
  {
    name: "the paths of webhooks are replaced at each look",
    file: "src/operator/certificates/path-tokens.ts",
    text: "return isOver(ROTATE_EVERY_MS) ? rotated(tokens, now) : undefined;",
    by: "return rotated(tokens, now);",
  },
  {
    name: "hooks cover the control plane's namespaces",
    file: "src/core/installation/installation.ts",
    text: 'const KUBERNETES_NAMESPACES = ["kube-system", "kube-public", "kube-node-lease"];',
    by: 'const KUBERNETES_NAMESPACES = ["kube-public"];',
  },
  {
    name: "a leader closes opened webhooks before a replica is ready",
    file: "src/operator/controller/webhook-controller.ts",
    text: "if ((opened !== undefined || isOnStandby(live)) && !(await this.#isReady())) return false;",
    by: "",
  },
  {
    name: "edited webhooks are not repaired",
    file: "src/operator/controller/webhook-controller.ts",
    text: "await repairs.write(wanted, live, webhookDeviations);",
    by: "",
  },
  {
    name: "the certificate is not read again",
    file: "src/operator/certificates/certificates.ts",
    text: "this.#timer = setInterval(() => void this.refresh(),",
    by: "this.#timer = setInterval(() => undefined,",
  },
  {
    name: "deleted webhooks are not created again",
    file: "src/operator/controller/webhook-controller.ts",
    text: "? ownership.creates && (await this.#register(plain, may))",
    by: "? true",
  },
  // The operator of project-limit.
  {
    name: "the operator does not look for edits by others",
    file: "src/operator/operand/operand-controller.ts",
    text: "const isDue = this.#done === undefined || this.#clock() - this.#done.at >= DRIFT_MS;",
    by: "const isDue = this.#done === undefined;",
  },
  // The watchdog.
  {
    name: "a watchdog that crashed starts counting again",
    file: "src/operator/watchdog/absence.ts",
    text: "observedMs: continues ? record.observedMs : 0, last: seen",
    by: "observedMs: 0, last: seen",
  },
  {
    name: "the watchdog opens only one of both configurations",
    file: "src/operator/watchdog/watchdog.ts",
    text: "if (live === undefined || names.length === 0) continue;",
    by: "if (live === undefined || names.length === 0 || path.includes('validating')) continue;",
  },
  {
    name: "opened webhooks are not closed again",
    file: "src/operator/controller/webhook-controller.ts",
    text: "const opened = openedNote(live);",
    by: "const opened = openedNote(live);\n    if (opened !== undefined) return false;",
  },
  // Rollouts between configurations.
  {
    name: "a replica allows hooks that it does not have",
    file: "src/admission/review/routes.ts",
    text: "if (found.length === 0) return { notFound: unknownHook(name, phase, all) };",
    by: "if (found.length === 0) continue;",
  },
  {
    name: "a hook is registered while a replica serves that does not have it",
    file: "src/operator/controller/webhook-controller.ts",
    text: "const declaredHooks = assembly.declaredHooks.filter((hook) => this.#supported.has(hook));",
    by: "const declaredHooks = assembly.declaredHooks;",
  },
  {
    name: "a replica serves before hooks are withdrawn that it does not have",
    file: "src/operator/controller/replica.ts",
    text: "await untilSupported(client, () => source.assembly.hooks, log, signal);",
    by: "",
  },
  {
    name: "a module that is switched off leaves its webhooks",
    file: "src/operator/webhooks/deviation.ts",
    text: "export function webhookDeviations(wanted: JsonObject, live: JsonObject): string[] {",
    by: "export function webhookDeviations(wanted: JsonObject, live: JsonObject): string[] {\n  const kept = new Set(listAt(wanted, 'webhooks').map((one) => stringAt(one, 'name')));\n  live = { ...live, webhooks: listAt(live, 'webhooks').filter((one) => kept.has(stringAt(one, 'name'))) };",
  },
  // Placement.
  {
    name: "a deleted policy still counts",
    file: "src/core/module/assembly.ts",
    text: "policies?.delete(key);\n      return;",
    by: "return;",
  },
  {
    name: "a status is written over a newer one",
    file: "src/cluster/controller/planned-writes.ts",
    text: 'const operations = [{ op: "add", path: "/status", value: write.status }];',
    by: 'return client.request("PATCH", path + "/status?" + queryOf(options), { body: [{ op: "add", path: "/status", value: write.status }], contentType: "application/json-patch+json" });\n    const operations: Json[] = [];',
  },
  {
    name: "an update loses what was injected",
    file: "src/modules/placement/place/update.ts",
    text: "const { restored, removed } = carryInjections(carrying, reported, staleParts(wanting), limits);",
    by: "const { restored, removed } = { restored: [], removed: new Map() };",
  },
  {
    name: "a changed policy starts no scan",
    file: "src/modules/placement/reconciler.ts",
    text: "if (!KINDS.has(resource)) return [];\n      state.changes++;",
    by: "if (!KINDS.has(resource)) return [];",
  },
  // Protected nodes.
  {
    name: "a group in Enable only reports",
    file: "src/modules/node-guard/claims/evaluate-claim.ts",
    text: 'if (group.effectiveMode === "Inform") return "would-deny";',
    by: 'if (group.effectiveMode !== "Disable") return "would-deny";',
  },
  {
    name: "the fallback of a group that is gone stays",
    file: "src/operator/controller/managed-objects-controller.ts",
    text: "if (desired.has(key) || !isWrittenByUsher(live)) continue;",
    by: "continue;",
  },
  {
    name: "pods on protected nodes are counted once",
    file: "src/modules/node-guard/status/reconciler.ts",
    text: "enqueue: policyKeys(view), requeueAfter: SCAN_SECONDS };",
    by: "enqueue: policyKeys(view) };",
  },
  // Pod Security.
  {
    name: "the status of an exception is not written",
    file: "src/modules/pod-os/reconciler.ts",
    text: 'return object === undefined || !areInForce(context) ? [] : [{ kind: "exception", name }];',
    by: "return [];",
  },
  {
    name: "the level of a namespace is that of its first sight",
    file: "src/modules/pod-os/security/admission/namespace-policy.ts",
    text: "if (known !== undefined) return policyOf(known, configuration);",
    by: "const first = ((globalThis as Record<string, any>)['levels'] ??= new WeakMap());\n  if (known !== undefined) {\n    if (!first.has(view)) first.set(view, new Map());\n    if (!first.get(view).has(namespace)) first.get(view).set(namespace, known);\n    return policyOf(first.get(view).get(namespace), configuration);\n  }",
  },
];
