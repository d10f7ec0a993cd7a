// The effect of a fail-closed policy on a real cluster: while usher runs, and while it is down.
import { beforeAll, expect, test } from "vitest";
import { at, type Json, listAt, stringAt } from "../../src/core/json.ts";
import { clusterPolicy } from "../builders/policy.ts";
import { usher } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { createNamespace, describeOwnCluster } from "../cluster/describe.ts";
import { installWords, REPLICAS } from "./fixtures/install.ts";

const HOOKS = "/apis/admissionregistration.k8s.io/v1";
const MUTATING = `${HOOKS}/mutatingwebhookconfigurations/usher`;
const VALIDATING = `${HOOKS}/validatingwebhookconfigurations/usher`;
const POLICIES = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies";
const USHER = "/apis/apps/v1/namespaces/usher-system/deployments/usher";

describeOwnCluster("a closed policy", {}, (cluster) => {
  let [closed, open, later, enforced] = ["", "", "", ""];

  const policy = (name: string, spec: object) => {
    const { metadata: _none, ...rest } = clusterPolicy(name, {
      podSelector: {},
      nodeSelector: { pool: "a" },
      ...spec,
    });
    return cluster().call("POST", POLICIES, { ...rest, metadata: { name } });
  };
  const createPod = (namespace: string, spec: object = {}) =>
    cluster().request("POST", `/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
      metadata: { generateName: "p-" },
      spec: { containers: [{ name: "c", image: "any" }], ...spec },
    });
  const placed = async (namespace: string) =>
    stringAt((await createPod(namespace)).body, "spec", "nodeSelector", "pool") === "a";
  const deployments = (namespace: string) => `/apis/apps/v1/namespaces/${namespace}/deployments`;
  const web = (image = "any") => ({
    metadata: { name: "web" },
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: "web" } },
      template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image }] } },
    },
  });
  /** The namespaces of the webhooks that refuse while usher is down. */
  const refusing = async (path = MUTATING): Promise<Json[]> => {
    const entries = listAt(await cluster().call("GET", path), "webhooks");
    return entries
      .filter((entry) => at(entry, "failurePolicy") === "Fail")
      .flatMap((entry) => listAt(entry, "namespaceSelector", "matchExpressions", 0, "values"));
  };

  beforeAll(async () => {
    for (const node of ["n1", "n2"]) await cluster().createNode(node);
    const installed = await usher(await installWords(cluster()));
    expect(installed).toMatchObject({ code: 0 });
    closed = await createNamespace(cluster(), { team: "closed" });
    open = await createNamespace(cluster());
    later = await createNamespace(cluster());
    enforced = await createNamespace(cluster());
  });

  test("is registered for the namespaces that it selects, and places there like a fail-open one", async () => {
    expect(await refusing()).toEqual([]);
    await policy("closed", { failurePolicy: "Fail", namespaceSelector: { matchLabels: { team: "closed" } } });
    await eventually("the fail-closed hook", async () => (await refusing()).includes(closed), 20_000);
    expect(await refusing()).toEqual([closed]);
    await eventually("both replicas to place", async () => {
      return (await Promise.all(Array.from({ length: 6 }, () => placed(closed)))).every(Boolean);
    });
    expect(await placed(open)).toBe(false);
  });

  test("one webhook is called per object: the fail-closed one in selected namespaces, and the fail-open one elsewhere", async () => {
    for (const namespace of [closed, open]) await cluster().call("POST", deployments(namespace), web());
    const stored = await cluster().call("GET", `${deployments(closed)}/web`);
    expect(at(stored, "spec", "template", "spec", "nodeSelector")).toEqual({ pool: "a" });
    const asked = (namespace: string) =>
      cluster()
        .auditLog()
        .filter(({ verb, objectRef }) => verb === "create" && objectRef?.namespace === namespace)
        .filter(({ objectRef }) => objectRef?.resource === "deployments")
        .flatMap(({ annotations = {} }) => Object.entries(annotations))
        .filter(([key]) => /^mutation.webhook.admission.k8s.io\/round_\d_index/.test(key))
        .map(([, value]) => stringAt(JSON.parse(value) as Json, "webhook"));
    await eventually("the audit log", async () => asked(open).length > 0 && asked(closed).length > 0);
    expect(asked(closed)).toEqual(["placement-closed-pods.placement-closed-templates.usher.dev"]);
    expect(asked(open)).toEqual(["placement.usher.dev"]);
  });

  test("a namespace that gets the label later is covered, and one that loses it is released", async () => {
    const label = (name: string, team: string | null) =>
      cluster().call("PATCH", `/api/v1/namespaces/${name}`, { metadata: { labels: { team } } });
    await label(later, "closed");
    await eventually("the new namespace", async () => (await refusing()).includes(later), 15_000);
    await label(later, null);
    await eventually("it to be released", async () => !(await refusing()).includes(later), 15_000);
    await label(later, "closed");
    await eventually("it to be covered again", async () => (await refusing()).includes(later), 15_000);
    await eventually("pods in it to be placed", () => placed(later));
  });

  test("the validating hook refuses unmet requirements, and only where a policy enforces them", async () => {
    const entries = async () =>
      listAt(await cluster().call("GET", VALIDATING), "webhooks").map((one) => stringAt(one, "name"));
    expect((await entries()).join()).not.toContain("enforcement");
    await policy("strict", {
      enforcement: "Refuse",
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": open } },
    });
    await eventually(
      "the shadow hook",
      async () => (await entries()).join().includes("placement-enforcement"),
      20_000,
    );
    const refused = await eventually("a refusal", async () => {
      const reply = await createPod(open, { nodeSelector: { pool: "b" } });
      return reply.status === 403 ? reply : undefined;
    });
    expect(stringAt(refused.body, "message")).toMatch(
      /policy strict requires pool=a at spec\.nodeSelector\.pool.*USHER-P30/,
    );
    await eventually("both replicas to place", async () => {
      return (await Promise.all(Array.from({ length: 6 }, () => placed(open)))).every(Boolean);
    });
    await cluster().call("DELETE", `${POLICIES}/strict`);
    await eventually(
      "the shadow hook to be gone",
      async () => !(await entries()).join().includes("enforcement"),
      20_000,
    );
    expect((await createPod(open, { nodeSelector: { pool: "b" } })).status).toBe(201);
  });

  test("a policy that refuses unmet requirements is fail-closed without a failurePolicy, and fail-open with Ignore", async () => {
    const where = { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": enforced } } };
    await policy("lenient", { enforcement: "Refuse", failurePolicy: "Ignore", ...where });
    await eventually("the fail-open hook", async () => {
      return (await createPod(enforced, { nodeSelector: { pool: "b" } })).status === 403;
    });
    expect(await refusing(VALIDATING)).not.toContain(enforced);
    await policy("enforcing", { enforcement: "Refuse", ...where });
    for (const path of [VALIDATING, MUTATING])
      await eventually("the fail-closed hook", async () => (await refusing(path)).includes(enforced), 20_000);
    await cluster().call("DELETE", `${POLICIES}/lenient`);
  });

  test("usher down: pods are refused in selected namespaces and admitted elsewhere", async () => {
    await cluster().call("PATCH", `${USHER}/scale`, { spec: { replicas: 0 } });
    await eventually(
      "usher away",
      async () => {
        const pods = await cluster().call("GET", REPLICAS);
        return listAt(pods, "items").length === 0;
      },
      60_000,
    );
    for (const namespace of [closed, later]) {
      const { status, body } = await createPod(namespace);
      expect(`${status} ${stringAt(body, "message")}`).toMatch(
        /^500 .*failed calling webhook "placement-closed/,
      );
    }
    // The pod meets the policy, but no usher can confirm it.
    const unjudged = await createPod(enforced, { nodeSelector: { pool: "a" } });
    expect(`${unjudged.status} ${stringAt(unjudged.body, "message")}`).toMatch(
      /^500 .*failed calling webhook/,
    );
    expect((await createPod(open)).status).toBe(201);
    expect((await createPod("kube-system")).status).toBe(201);
  });

  test("usher down: a template can't change there, and the rest of its object can", async () => {
    const path = `${deployments(closed)}/web`;
    const stripped = await cluster().request("PATCH", path, {
      spec: { template: { spec: { nodeSelector: null } } },
    });
    expect(stripped.status).toBe(500);
    for (const change of [{ metadata: { labels: { a: "b" } } }, { spec: { replicas: 1 } }])
      expect((await cluster().request("PATCH", path, change)).status).toBe(200);
    await cluster().call("PATCH", `${path}/scale`, { spec: { replicas: 0 } });
    await cluster().call("DELETE", path);
    expect((await cluster().request("POST", deployments(closed), web())).status).toBe(500);
  });

  test("usher back: requests are answered, and without the policy nothing is fail-closed", async () => {
    await cluster().call("PATCH", `${USHER}/scale`, { spec: { replicas: 1 } });
    await eventually("pods placed", () => placed(closed), 90_000);
    for (const name of ["closed", "enforcing"]) await cluster().call("DELETE", `${POLICIES}/${name}`);
    await eventually("nothing closed", async () => (await refusing()).length === 0, 30_000);
    expect((await createPod(closed)).status).toBe(201);
  });

  test("usher's namespace deleted by hand: its webhooks are deleted too, and nothing stays locked", async () => {
    await policy("closed", { failurePolicy: "Fail", namespaceSelector: { matchLabels: { team: "closed" } } });
    await eventually("the fail-closed hook", async () => (await refusing()).includes(closed), 30_000);
    await cluster().call("DELETE", "/api/v1/namespaces/usher-system");
    for (const path of [MUTATING, VALIDATING])
      await eventually("it gone", async () => (await cluster().request("GET", path)).status === 404, 90_000);
    await eventually("pods to be admitted", async () => (await createPod(closed)).status === 201);
  });
});
