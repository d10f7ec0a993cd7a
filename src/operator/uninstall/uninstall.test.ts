import { expect, onTestFinished, test, vi } from "vitest";
import { pathOf } from "../../../test/support/operator/installation.ts";
import {
  CRD,
  INSTALLED,
  installed,
  NAMESPACE,
  named,
  plan,
} from "../../../test/support/operator/uninstall.ts";
import { at, stringAt } from "../../core/json.ts";
import { describeObject } from "../install/apply.ts";
import { NotReadyError } from "../install/install.ts";
import { carryOutRemovals } from "./uninstall.ts";

test("executes the plan in order, each object as it was seen, and leaves the others", async () => {
  const cluster = installed();
  const { removals, going } = await plan(cluster);
  const done: string[] = [];
  await carryOutRemovals(cluster.objects, removals, ({ live }) => done.push(describeObject(live)));
  expect(cluster.written).toEqual(going.map((what) => `delete ${what}`));
  expect(done).toEqual(removals.map(({ live }) => describeObject(live)));
  for (const body of cluster.server.bodies)
    expect(stringAt(body, "preconditions", "uid")).toMatch(/^uid of /);
  expect(cluster.server.bodies).toHaveLength(going.length);
  expect(cluster.has(INSTALLED.find((object) => describeObject(object) === CRD) ?? {})).toBe(true);
});

test("workloads have ended before the objects that they would recreate are deleted", async () => {
  const cluster = installed();
  const pod = named("v1", "Pod", "usher-1");
  cluster.have(pod);
  const { removals } = await plan(cluster);
  const service = pathOf(INSTALLED.find((object) => object["kind"] === "Service") ?? {});
  let looks = 0;
  const usual = cluster.server.fault;
  cluster.server.fault = (method, path, options) => {
    if (method === "GET" && path.includes("/pods?")) {
      looks += 1;
      expect(cluster.server.objects.has(service)).toBe(true);
      if (looks === 2) cluster.server.objects.delete(pathOf(pod));
    }
    return usual(method, path, options);
  };
  await carryOutRemovals(cluster.objects, removals, () => undefined);
  expect(looks).toBe(2);
  expect(cluster.server.objects.has(service)).toBe(false);
});

test("a webhook that a replica registered again, before it lost the permission, is deleted as well", async () => {
  const cluster = installed();
  const { removals } = await plan(cluster);
  const hook = INSTALLED.find((object) => object["kind"] === "MutatingWebhookConfiguration") ?? {};
  await carryOutRemovals(cluster.objects, removals, ({ live }) => {
    if (at(live, "kind") === "Deployment") cluster.have(hook);
  });
  expect(cluster.has(hook)).toBe(false);
});

test.each(["/services/usher", "/pods"])(
  "a webhook that came back is deleted, even if the uninstall breaks at %s",
  async (place) => {
    const cluster = installed();
    const { removals } = await plan(cluster);
    const hook = INSTALLED.find((object) => object["kind"] === "ValidatingWebhookConfiguration") ?? {};
    cluster.refusing = (method, path) => {
      const broken = path.endsWith(place) && (method === "DELETE" || place === "/pods");
      if (broken) cluster.have(hook);
      return broken;
    };
    await expect(carryOutRemovals(cluster.objects, removals, () => undefined)).rejects.toThrow(/403/);
    expect(cluster.has(hook)).toBe(false);
  },
);

test("a webhook that came back is deleted before everything else is gone", async () => {
  const cluster = installed();
  const { removals } = await plan(cluster);
  const hook = INSTALLED.find((object) => object["kind"] === "ValidatingWebhookConfiguration") ?? {};
  const deployment = INSTALLED.find((object) => object["kind"] === "Deployment") ?? {};
  const usual = cluster.server.fault;
  cluster.server.fault = (method, path, options) => {
    if (method === "DELETE" && path === pathOf(deployment)) cluster.have(hook);
    // Also while replicas are still ending, which may take a minute.
    if (path.includes("/pods?")) expect(cluster.has(hook)).toBe(false);
    return usual(method, path, options);
  };
  await carryOutRemovals(cluster.objects, removals, ({ live }) => {
    if (live["kind"] === "Deployment") expect(cluster.has(hook)).toBe(false);
  });
});

test("if nothing could be started, the webhooks stay: usher would only restore them", async () => {
  const cluster = installed();
  cluster.refusing = (method, path) => method === "DELETE" && path.includes("clusterrolebindings");
  const { removals } = await plan(cluster);
  await expect(carryOutRemovals(cluster.objects, removals, () => undefined)).rejects.toThrow(/403/);
  expect(cluster.written).toEqual([]);
});

test("pods that do not end are named with their nodes and the remedy, and it is not usher's failure", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const cluster = installed();
  cluster.have({ ...named("v1", "Pod", "usher-7d9-x"), spec: { nodeName: "n1" } });
  const { removals } = await finished(plan(cluster));
  const error = await finished(
    carryOutRemovals(cluster.objects, removals, () => undefined).catch((thrown: unknown) => thrown),
  );
  expect(error).toBeInstanceOf(NotReadyError);
  expect(String(error)).toMatch(/usher-7d9-x on node n1/);
  expect(String(error)).toMatch(new RegExp(`kubectl delete pod -n ${NAMESPACE} usher-7d9-x --force`));
});

/** Advances the clock until it has happened; the server's own round trips are real. */
async function finished<T>(promise: Promise<T>): Promise<T> {
  let over = false;
  const end = () => {
    over = true;
  };
  promise.then(end, end);
  while (!over) {
    await vi.advanceTimersByTimeAsync(500);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return promise;
}

test("a refusal stops it, and is reported", async () => {
  const cluster = installed();
  cluster.refusing = (method, path) => method === "DELETE" && path.endsWith("/services/usher");
  const { removals } = await plan(cluster);
  await expect(carryOutRemovals(cluster.objects, removals, () => undefined)).rejects.toThrow(
    /deleting Service usher-system\/usher: .* 403/,
  );
  // From here on no request waits for usher, and another attempt can remove the rest.
  expect(cluster.written.slice(0, 4).join()).toMatch(/registration.*Mutating.*Validating/);
});
