import { expect, test, vi } from "vitest";
import {
  CRD,
  HOOKS,
  MUTATING,
  rounds,
  running,
  VALIDATING,
} from "../../../test/support/operator/controller.ts";
import { SEATING } from "../../../test/support/operator/installation.ts";
import { type JsonObject, stringAt } from "../../core/json.ts";
import type { Module } from "../../core/module/module.ts";
import { customResourceDefinition } from "../../core/registration/crd.ts";
import { OWN_LABELS } from "../../core/registration/names.ts";

test("a replica that stopped leading, or is not ready, writes nothing", async () => {
  for (const more of [{ leading: () => false }, { ready: () => false }]) {
    const run = running(more);
    run.server.put(CRD, { ...customResourceDefinition(first(SEATING)), metadata: { labels: OWN_LABELS } });
    run.controller.start();
    await rounds(run, 2);
    expect(run.server.objects.has(MUTATING)).toBe(false);
  }
});

test("a failure is logged when it begins, when it recurs, and every hour in between", async () => {
  let now = 0;
  const run = running({ clock: () => now });
  let why: string | undefined = "no";
  run.certificates.reconcile = async (trust) => {
    run.trusts.push(trust);
    if (why !== undefined) throw new Error(why);
  };
  const entries = () => run.logged.filter(({ message }) => message.startsWith("failed to reconcile")).length;
  run.controller.start();
  await rounds(run, 3);
  expect(entries()).toBe(1);
  why = undefined;
  await rounds(run, 2);
  why = "no";
  await rounds(run, 3);
  expect(entries()).toBe(2);
  why = "never";
  await rounds(run, 3);
  expect(entries()).toBe(3);
  now += 3_600_000;
  await rounds(run, 3);
  expect(entries()).toBe(4);
});

test("a missing or edited CRD is repaired; those of a newer usher and of another owner are left", async () => {
  const wanted = customResourceDefinition(first(SEATING));
  const edited = { ...wanted, spec: { ...(wanted["spec"] as JsonObject), scope: "Namespaced" } };
  const labelled = (version: string) => ({
    ...edited,
    metadata: { labels: { ...OWN_LABELS, "app.kubernetes.io/version": version } },
  });
  const cases: [string, JsonObject | undefined, string][] = [
    ["missing", undefined, "Cluster"],
    ["edited", labelled("1.2.0"), "Cluster"],
    ["older", labelled("1.1.9"), "Cluster"],
    ["newer", labelled("1.3.0"), "Namespaced"],
    ["foreign", { ...edited, metadata: {} }, "Namespaced"],
  ];
  for (const [what, live, scope] of cases) {
    const run = running();
    if (live !== undefined) run.server.put(CRD, live);
    run.controller.start();
    await vi.waitFor(() => expect(run.server.objects.has(VALIDATING)).toBe(true), 10_000);
    await rounds(run, 1);
    await run.controller.stop();
    expect(stringAt(run.server.objects.get(CRD), "spec", "scope"), what).toBe(scope);
    const entries = run.logged.filter(({ message }) => message.startsWith("ownership conflict: CRD"));
    expect(entries.length, what).toBe(what === "foreign" ? 1 : 0);
  }
});

test("a predecessor and an invalid stored policy are logged once", async () => {
  const run = running();
  run.server.put(`${HOOKS}/mutatingwebhookconfigurations/old-seating`, {});
  const object = {
    apiVersion: "test.usher.dev/v1",
    kind: "Seating",
    metadata: { name: "bad" },
    spec: { rows: 3 },
  };
  run.assembly.apply([{ resource: "seatings.test.usher.dev", namespace: "", name: "bad", object }]);
  run.controller.start();
  await rounds(run, 3);
  const messages = run.logged.map(({ message }) => message);
  expect(messages.filter((one) => one.startsWith("another system"))).toHaveLength(1);
  expect(run.logged.find(({ message }) => message.startsWith("stored policy"))?.facts).toMatchObject({
    name: "bad",
  });
});

function first({ kinds }: Module) {
  const [kind] = kinds;
  if (kind === undefined) throw new Error("no kind");
  return kind;
}
