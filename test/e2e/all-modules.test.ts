// All modules in one installation, with usher's own service account: each does its main task beside the others, and
// none blocks the cluster while usher is down, nor after it was removed.
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { bundleOf } from "../../deploy/generate/olm/bundle.ts";
import { at, equal, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { folder, program, usher } from "../cli/usher.ts";
import type { Reply } from "../cluster/access/client.ts";
import { grantedNamespaces } from "../cluster/access/granted.ts";
import { ADMIN, type Identity } from "../cluster/access/identity.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster, LONG } from "../cluster/describe.ts";
import {
  answerOf,
  comparable,
  dumpOf,
  generated,
  reviewsOf,
  STORED,
  shortly,
  UNTOUCHED,
  WORLD_GROUPS,
  WORLD_NODES,
  worldObjects,
  writtenOf,
} from "./fixtures/agreement.ts";
import { calledWebhook, forge } from "./fixtures/forged-reviews.ts";
import { configured, install, installWords } from "./fixtures/install.ts";
import { left } from "./fixtures/installed-objects.ts";
import { placingPolicy } from "./fixtures/placed-pods.ts";
import { apps, EVERYTHING, GuardStage, MALLORY, SPEC, workload } from "./guarding/stage.ts";

const OPTIONS = { flags: { "kube-apiserver": ["--disable-admission-plugins=PodSecurity"] } } as const;
const ADMISSION = "/apis/admissionregistration.k8s.io/v1";
const NAMESPACES = "/api/v1/namespaces";
const USHER = "system:serviceaccount:usher-system:usher";
const ALICE: Identity = { user: "alice" };
const PRIVILEGED = { containers: [{ name: "c", image: "app:1", securityContext: { privileged: true } }] };
const FALLBACK = ["assign", "bind", "labels"].map((rule) => `usher-node-guard-controlplane-${rule}`);

const LIMIT = "/apis/operator.project.openshift.io/v1/projectrequestlimits/cluster";
const PLACEMENT = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies/etcd";
const LABELS = "/apis/node-labels.openshift.io/v1beta1/namespaces/default/labels/pools";
const GUARD = "/apis/scheduling.openshift.io/v1alpha1/nodeschedulingpolicies/cluster";

/** The CRDs of project-limit, as installed by OLM with the operator. */
const OF_OLM: readonly JsonObject[] = bundleOf({
  version: "0.1.0",
  image: `registry.example.com/usher@sha256:${"1".repeat(64)}`,
}).crds.map((crd) => ({
  ...crd,
  metadata: { name: stringAt(crd, "metadata", "name") ?? "", labels: { "olm.managed": "true" } },
}));

/** The objects that an administrator writes once usher runs, beside the policy of node-guard. */
const OBJECTS: readonly JsonObject[] = [
  {
    apiVersion: "operator.project.openshift.io/v1",
    kind: "ProjectRequestLimit",
    metadata: { name: "cluster" },
    spec: { limits: [{ users: [ALICE.user], maxProjects: 1 }], namespaces: {} },
  },
  placingPolicy(),
  {
    apiVersion: "node-labels.openshift.io/v1beta1",
    kind: "Labels",
    metadata: { name: "pools", namespace: "default" },
    // Includes a protected node.
    spec: { nodeNamePatterns: ["w-1", "cp-1"], labels: { pool: "etcd" } },
  },
  ...grantedNamespaces(ALICE.user, "get", "create", "delete"),
];

describeOwnCluster("all modules in one installation", OPTIONS, (cluster) => {
  const stage = new GuardStage(cluster);
  const settings = (more: JsonObject = {}) =>
    configured({
      featureGates: { OpenShiftNodeSchedulingPolicy: true },
      excludedNamespaces: [UNTOUCHED],
      modules: {
        // Usher writes no events for requests that the policies refuse first.
        "node-guard": { fallback: false, ...more },
        "pod-os": {
          podSecurity: { mode: "Replace" },
          os: { write: true, nodeMismatch: "Deny", harden: ["hard"] },
        },
      },
    });
  const answer = ({ status, body }: Reply) => `${status} ${stringAt(body, "message") ?? ""}`;
  const project = (name: string, as?: Identity) =>
    cluster().request("POST", NAMESPACES, { metadata: { name } }, as);
  const names = async (resource: string) =>
    listAt(await cluster().call("GET", `${ADMISSION}/${resource}`), "items").map((one) =>
      stringAt(one, "metadata", "name"),
    );
  const label = async (node: string) =>
    stringAt(await cluster().call("GET", `/api/v1/nodes/${node}`), "metadata", "labels", "pool");
  const runs = (namespace: string, name: string) =>
    eventually(`pod ${name} to run`, async () => {
      const pod = await cluster().call("GET", `${NAMESPACES}/${namespace}/pods/${name}`);
      return stringAt(pod, "status", "phase") === "Running" && stringAt(pod, "spec", "nodeName");
    });
  const events = async (): Promise<readonly Json[]> =>
    listAt(await cluster().call("GET", "/apis/events.k8s.io/v1/events"), "items");
  /** The names of all replicas seen so far; their output outlives them. */
  const ran = new Set<string>();
  const replicas = async (): Promise<readonly Json[]> => {
    const pods = await stage.pods("usher-system", "app.kubernetes.io/component=admission");
    for (const pod of pods) ran.add(stringAt(pod, "metadata", "name") ?? "");
    return pods;
  };

  beforeAll(async () => {
    await stage.prepare();
    await stage.namespaces("team-a", "locked", "hard", UNTOUCHED);
    for (const name of ["locked", "hard"])
      await cluster().call("PATCH", `${NAMESPACES}/${name}`, {
        metadata: { labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
      });
    await cluster().apply(...OF_OLM);
    await install(cluster(), ...settings());
    await cluster().apply(...OBJECTS);
    await stage.mode("Enable");
  });

  test("node-guard: refuses a pod by its node name with a readable event, and the scheduler picks a worker", async () => {
    const refused = await stage.pod({ ...SPEC, nodeName: "cp-0" });
    expect(answer(refused)).toMatch(/^403 admission webhook "node-guard.* denied the request: .*USHER-G01/s);
    await eventually("the event", async () =>
      (await events()).some(
        (one) => at(one, "reason") === "NodeGuardDenied" && stringAt(one, "note")?.includes("cp-0") === true,
      ),
    );
    const name = stage.name();
    const created = await stage.pod({ ...SPEC, ...EVERYTHING }, { metadata: { name } });
    expect(answer(created)).toMatch(/^201/);
    expect(at(created.body, "spec", "affinity", "nodeAffinity")).toBeDefined();
    expect(await runs("team-a", name)).toMatch(/^w-/);
  });

  test("pod-os: refuses a privileged pod with upstream's text, adds a selector for an OS, and binds no pod to a node of another", async () => {
    const refused = await stage.pod(PRIVILEGED, { namespace: "locked" });
    expect(answer(refused)).toMatch(
      /^403 admission webhook "pod-security.usher.dev" denied the request: pods "p-\d+" is forbidden: violates PodSecurity "restricted:latest": privileged \(container "c" must not set securityContext.privileged=true\), /,
    );
    // Only usher evaluates Pod Security: the text occurs once.
    expect(answer(refused).match(/violates/g)).toHaveLength(1);
    await cluster().call("POST", apps("locked", "replicasets"), workload("app", PRIVILEGED, { replicas: 1 }));
    for (const kind of ["Namespace", "ReplicaSet"])
      await eventually(`the event on a ${kind}`, async () =>
        (await events()).some(
          (one) =>
            at(one, "reason") === "PodSecurityViolation" &&
            at(one, "regarding", "kind") === kind &&
            at(one, "metadata", "namespace") === "locked",
        ),
      );
    // A client that knows the path can't create an event about an object of its choice.
    const webhook = await calledWebhook(cluster());
    const forged = await forge(webhook, `/${webhook.token}/validate/pod-security`, {
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      request: {
        uid: "1",
        kind: { group: "", version: "v1", kind: "Pod" },
        resource: { group: "", version: "v1", resource: "pods" },
        operation: "CREATE",
        namespace: "locked",
        name: "forged",
        userInfo: { username: "mallory" },
        object: {
          apiVersion: "v1",
          kind: "Pod",
          metadata: {
            name: "forged",
            namespace: "locked",
            ownerReferences: [
              { apiVersion: "apps/v1", kind: "ReplicaSet", name: "ghost", uid: "0", controller: true },
            ],
          },
          spec: PRIVILEGED,
        },
      },
    });
    expect(at(forged, "allowed")).toBe(false);
    const found = await eventually("the event on the namespace", async () =>
      (await events()).find((one) => stringAt(one, "note")?.startsWith("ReplicaSet ghost: ") === true),
    );
    expect(found).toMatchObject({
      regarding: { kind: "Namespace", name: "locked" },
      metadata: { namespace: "locked", annotations: { "usher.dev/caller": "unverified" } },
    });
    const os = { os: { name: "windows" } };
    const written = await stage.pod({ ...SPEC, ...os }, { query: "?dryRun=All" });
    expect(at(written.body, "spec", "nodeSelector")).toEqual({ "kubernetes.io/os": "windows" });
    const elsewhere = await stage.pod({ ...SPEC, ...os, nodeName: "w-0" }, { query: "?dryRun=All" });
    expect(answer(elsewhere)).toMatch(/^403 .*is for windows, node w-0 runs linux.*USHER-O04/s);
  });

  test("project-limit: refuses the second namespace of a user with limit 1", async () => {
    const first = await eventually("the limit on alice", async () => {
      const dry = await cluster().request(
        "POST",
        `${NAMESPACES}?dryRun=All`,
        { metadata: { name: "a" } },
        ALICE,
      );
      return String(dry.headers["warning"] ?? "").includes("this is the last of 1 project(s)");
    }).then(() => project("alice-1", ALICE));
    expect(stringAt(first.body, "metadata", "annotations", "openshift.io/requester")).toBe(ALICE.user);
    expect(answer(await project("alice-2", ALICE))).toMatch(
      /^403 .*namespaces "alice-2" is forbidden: user alice cannot create more than 1 project\(s\)\. Has 1: alice-1 \(USHER-Q01\)/,
    );
  });

  test("node-labels and placement: a rule labels nodes, also protected ones, and a policy places a pod there", async () => {
    for (const node of ["w-1", "cp-1"])
      await eventually(`the label of ${node}`, async () => (await label(node)) === "etcd");
    const name = stage.name();
    const placed = await stage.pod(
      { ...SPEC, ...EVERYTHING },
      { metadata: { name, labels: { role: "etcd" } } },
    );
    expect(at(placed.body, "spec", "nodeSelector")).toEqual({ pool: "etcd" });
    // The rule labelled a protected node as well; steering does not affect the worker.
    expect(await runs("team-a", name)).toBe("w-1");
  });

  test("a DaemonSet that three modules change has one generation, however often it is applied", async () => {
    const labels = { app: "agent", role: "etcd" };
    const object = {
      apiVersion: "apps/v1",
      kind: "DaemonSet",
      metadata: { name: "agent", namespace: "team-a" },
      spec: {
        selector: { matchLabels: { app: "agent" } },
        template: { metadata: { labels }, spec: { ...SPEC, ...EVERYTHING, os: { name: "linux" } } },
      },
    };
    for (let i = 0; i < 3; i++) await cluster().apply(object);
    const stored = await cluster().call("GET", `${apps("team-a", "daemonsets")}/agent`);
    expect(at(stored, "metadata", "generation")).toBe(1);
    const pod = at(stored, "spec", "template", "spec");
    expect(at(pod, "nodeSelector")).toEqual({ "kubernetes.io/os": "linux", pool: "etcd" });
    expect(at(pod, "affinity", "nodeAffinity")).toBeDefined();
    await eventually("an agent on the worker of the pool", async () => {
      const found = (await stage.pods("team-a", "app=agent")).map((one) => stringAt(one, "spec", "nodeName"));
      return found.join() === "w-1";
    });
  });

  /** Replaces the groups of the policy. */
  const guard = (...more: readonly JsonObject[]) =>
    cluster().call("PATCH", GUARD, {
      spec: { groups: [{ name: "ControlPlane", mode: "Enable", emergencyUsers: ["sre"] }, ...more] },
    });
  /** Objects for requests that exercise every feature of a module, and the stored objects of updates. */
  const enterWorld = async (world: readonly JsonObject[]): Promise<JsonObject[]> => {
    for (const [name, options] of Object.entries(WORLD_NODES)) await cluster().createNode(name, options);
    await cluster().apply(...world, ...STORED);
    await guard(...WORLD_GROUPS);
    const tries = async (
      expected: number,
      spec: JsonObject,
      labels: JsonObject = {},
      namespace = "team-a",
    ) => {
      const metadata = { name: stage.name(), labels };
      const query = "?dryRun=All";
      return (await stage.pod({ ...SPEC, ...spec }, { metadata, namespace, query })).status === expected;
    };
    const far = { nodeSelector: { pool: "far" } };
    await eventually("group gpu", () => tries(403, { nodeName: "g-0" }));
    await eventually("the override of edge", () => tries(201, { nodeName: "e-0" }));
    await eventually("enforcement", () => tries(403, far, { role: "strict" }));
    await eventually("onConflict", () => tries(403, far, { role: "web" }));
    await eventually("a warning", async () => {
      const metadata = { name: stage.name(), labels: { role: "warned" } };
      const { headers } = await stage.pod({ ...SPEC, ...far }, { metadata, query: "?dryRun=All" });
      return String(headers["warning"] ?? "").includes("USHER-P");
    });
    await eventually("Active", async () => {
      const exception = await cluster().call("GET", "/apis/usher.dev/v1alpha1/podsecurityexceptions/web");
      return listAt(exception, "status", "conditions").some(
        (one) => at(one, "type") === "Active" && at(one, "status") === "True",
      );
    });
    const paths = [
      ...["deployments", "daemonsets"].map((plural) => `${apps("team-a", plural)}/stored`),
      "/apis/batch/v1/namespaces/team-a/cronjobs/stored",
      ...["etcd", "strict"].map((role) => `${NAMESPACES}/team-a/pods/gated-${role}`),
      ...["cp-0", "w-0"].map((name) => `/api/v1/nodes/${name}`),
      `${NAMESPACES}/team-a`,
    ];
    return Promise.all(paths.map(async (path) => (await cluster().call("GET", path)) as JsonObject));
  };

  const leaveWorld = async () => {
    for (const [path, name] of [
      ["/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies", "strict"],
      ["/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies", "warned"],
      ["/apis/kupid.gardener.cloud/v1alpha1/namespaces/team-a/podschedulingpolicies", "web"],
      ["/apis/usher.dev/v1alpha1/podsecurityexceptions", "web"],
      ["/apis/usher.dev/v1alpha1/nodeguardoverrides", "edge"],
    ])
      await cluster().request("DELETE", `${path}/${name}`);
    await guard();
    await stage.inForce("Enable");
  };

  test("reviews of a dump and of the cluster agree with the API server on every creation and update", async () => {
    onTestFinished(leaveWorld);
    const stored = await enterWorld(worldObjects(Date.now()));
    const requests = generated(LONG ? 600 : 90, { any: MALLORY, limited: ALICE, unlimited: ADMIN }, stored);
    const kubeconfig = await cluster().kubeconfig();
    const path = `${NAMESPACES}/usher-system/configmaps/usher-configuration`;
    const text = stringAt(await cluster().call("GET", path), "data", "configuration.yaml") ?? "";
    const spec = at(JSON.parse(text) as Json, "spec") as JsonObject;
    const release = await cluster().call("GET", "/version");
    const kubernetesVersion = `${stringAt(release, "major")}.${stringAt(release, "minor")}`;
    const dump = await dumpOf(cluster());
    const [offline, live] = [
      await reviewsOf(requests, ["--source", dump, ...configured({ ...spec, kubernetesVersion })]),
      await reviewsOf(requests, ["--cluster", "--kubeconfig", kubeconfig]),
    ];
    expect(offline).toEqual(live);
    const differences: object[] = [];
    for (const [i, request] of requests.entries()) {
      const answered = await answerOf(cluster(), request);
      const reviewed = live[i];
      const same =
        reviewed?.allowed === answered.allowed &&
        (answered.allowed
          ? reviewed.warnings.join("\n") === answered.warnings.join("\n")
          : answered.warnings.every((one) => reviewed.warnings.includes(one))) &&
        answered.codes.every((code) => reviewed.codes.includes(code));
      if (!same)
        differences.push({ request: shortly(request), answered: { ...answered, stored: 0 }, reviewed });
      const written = await writtenOf(cluster(), request, reviewed?.emitted);
      if (answered.allowed && !equal(written, comparable(request, answered.stored)))
        differences.push({
          request: shortly(request),
          written,
          stored: comparable(request, answered.stored),
        });
    }
    expect(differences).toEqual([]);
    const codes = new Set(offline.flatMap((one) => one.codes));
    const some = ["USHER-E04", "USHER-G01", "USHER-Q01"];
    expect([...codes]).toEqual(expect.arrayContaining(LONG ? [...some, "USHER-O04", ""] : some));
  });

  test("commands on the cluster use its installation, and with --source the policies of files", async () => {
    const at = ["--kubeconfig", await cluster().kubeconfig()];
    const says = /^cluster https:\S+\ninstalled usher \S+, configuration of usher-system\n/;
    const list = await usher(["node-guard", "list", ...at]);
    expect(list.err).toMatch(says);
    expect(list.out).toMatch(/ControlPlane +Enable/);
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "team-a" } };
    const refused = await usher(["review", "-", "--as", MALLORY.user, ...at], {
      stdin: JSON.stringify({ ...pod, spec: { ...SPEC, nodeName: "cp-0" } }),
    });
    expect(refused).toMatchObject({ code: 1, err: expect.stringMatching(says) });
    expect(refused.out).toContain("USHER-G01");
    const policy = { ...placingPolicy({ podSelector: {}, nodeSelector: { pool: "new" } }) };
    const source = folder({ "policy.json": JSON.stringify(policy) });
    const tried = await usher(["review", "-", "--source", source, "--cluster", ...at], {
      stdin: JSON.stringify({ ...pod, spec: SPEC }),
    });
    expect(tried.err).toMatch(says);
    expect(tried.out).toMatch(/Pod team-a\/p +patch .*pool=new/);
    const typo = await usher(["pod-security", "scan", "-n", "taem-a", ...at]);
    expect(typo).toMatchObject({
      code: 2,
      err: expect.stringContaining("--namespace taem-a: no such namespace"),
    });
    const blind = await usher(["review", "-", "--kubeconfig", await cluster().kubeconfig(ALICE.user)], {
      stdin: JSON.stringify({ ...pod, spec: SPEC }),
    });
    expect(blind).toMatchObject({
      code: 3,
      err: expect.stringMatching(/not allowed to read ConfigMap .*--config/),
    });
  });

  test("every custom resource reports in its status that it is in use", async () => {
    for (const path of [LIMIT, PLACEMENT, LABELS, GUARD])
      await eventually(`the status of ${path}`, async () => {
        const object = await cluster().call("GET", path);
        const valid = listAt(object, "status", "conditions").find((one) => at(one, "type") === "Valid");
        return (
          stringAt(valid, "status") === "True" &&
          at(valid, "observedGeneration") === at(object, "metadata", "generation")
        );
      });
  });

  let matched = 0;

  test("usher's own pods come back while its hooks are fail-closed, also all of them at once", async () => {
    matched = await eventually(
      "requests that the policy matched",
      async () => Number(at(await cluster().call("GET", PLACEMENT), "status", "matched") ?? 0) || undefined,
    );
    const before = await replicas();
    expect(before).toHaveLength(2);
    await cluster().call("DELETE", `${NAMESPACES}/usher-system/pods`);
    await eventually(
      "new replicas to be ready",
      async () => {
        const old = new Set(before.map((pod) => stringAt(pod, "metadata", "uid")));
        const now = await replicas();
        const ready = now.filter((pod) =>
          listAt(pod, "status", "conditions").some(
            (one) => at(one, "type") === "Ready" && at(one, "status") === "True",
          ),
        );
        return ready.length === 2 && now.every((pod) => !old.has(stringAt(pod, "metadata", "uid")));
      },
      60_000,
    );
    await eventually(
      "the guard",
      async () => (await stage.pod({ ...SPEC, nodeName: "cp-0" })).status === 403,
    );
  });

  test("counts survive the replicas, and a limit without effect is warned about", async () => {
    expect(Number(at(await cluster().call("GET", PLACEMENT), "status", "matched"))).toBeGreaterThanOrEqual(
      matched,
    );
    const change = { spec: { namespaces: null } };
    const { headers } = await cluster().request("PATCH", `${LIMIT}?dryRun=All`, change);
    expect(headers["warning"]).toContain("add spec.namespaces");
  });

  test("usher maintains the fallback, which another install enables", async () => {
    await install(cluster(), ...settings({ fallback: true }));
    for (const resource of ["validatingadmissionpolicies", "validatingadmissionpolicybindings"])
      await eventually(resource, async () => (await names(resource)).sort().join() === FALLBACK.join());
    const policy = await cluster().call("GET", `${ADMISSION}/validatingadmissionpolicies/${FALLBACK[0]}`);
    expect(at(policy, "metadata", "ownerReferences")).toMatchObject([
      { kind: "ClusterRole", name: "usher-installation" },
    ]);
    const again = await program(await installWords(cluster()));
    expect(again.out).toMatch(/objects: 0 to create, 0 to update, \d+ unchanged$/m);
    // It answers before the webhook is called.
    await eventually("its refusal", async () =>
      answer(await stage.pod({ ...SPEC, nodeName: "cp-0" })).includes(
        `ValidatingAdmissionPolicy '${FALLBACK[0]}'`,
      ),
    );
  });

  test("without usher the control plane's pods are created, and namespaces can be deleted", async () => {
    await replicas();
    await stage.scaleUsher(0);
    expect(answer(await stage.pod({ ...SPEC, nodeName: "w-0" }))).toMatch(/^500 .*failed calling webhook/s);
    expect(answer(await stage.pod(SPEC, { namespace: "locked" }))).toMatch(/^500 .*failed calling webhook/s);
    expect(answer(await stage.pod({ ...SPEC, nodeName: "cp-0" }))).toMatch(
      /^403 .*usher-node-guard-controlplane-assign.*USHER-G01/s,
    );
    const name = stage.name();
    const core = await stage.pod(
      { ...SPEC, ...EVERYTHING },
      { namespace: "kube-system", metadata: { name } },
    );
    expect(answer(core)).toMatch(/^201/);
    await runs("kube-system", name);
    expect((await cluster().request("DELETE", `${NAMESPACES}/alice-1`, undefined, ALICE)).status).toBe(200);
    expect((await cluster().request("DELETE", `${NAMESPACES}/team-a`)).status).toBe(200);
    for (const gone of ["alice-1", "team-a"])
      await eventually(
        `${gone} to be gone`,
        async () => (await cluster().request("GET", `${NAMESPACES}/${gone}`)).status === 404,
        60_000,
      );
  });

  test("usher had all permissions that it needed", () => {
    const mine = cluster()
      .auditLog()
      .filter(({ user }) => user.username === USHER);
    expect(mine.length).toBeGreaterThan(50);
    // Nor did it send invalid requests, except to probe an older release for streaming lists.
    const refused = mine
      .filter(({ responseStatus }) => [400, 403, 405, 415, 422].includes(responseStatus?.code ?? 0))
      .filter(
        ({ verb, responseStatus }) =>
          verb !== "watch" ||
          !/unless the WatchList feature gate is enabled$/.test(responseStatus?.message ?? ""),
      );
    expect(
      refused.map(({ verb, objectRef, responseStatus }) => [
        verb,
        `${objectRef?.apiGroup ?? ""}/${objectRef?.resource}/${objectRef?.subresource ?? ""}`,
        responseStatus?.message,
      ]),
    ).toEqual([]);
    expect(ran.size).toBeGreaterThanOrEqual(6);
    const lines = [...ran].flatMap((name) => cluster().podLog("usher-system", name).split("\n"));
    expect(lines.filter((line) => line.includes("started leading"))).not.toEqual([]);
    expect(lines.filter((line) => line.includes(USHER) && line.includes("forbidden"))).toEqual([]);
    // No write is repeated because the API server stores it in another form.
    expect(lines.filter((line) => line.includes("does not store all fields"))).toEqual([]);
  });

  test("uninstall leaves the CRDs and their objects, and does not call usher", async () => {
    const kubeconfig = await cluster().kubeconfig();
    const { code, err } = await program(["uninstall", "--kubeconfig", kubeconfig]);
    expect(`${code} ${err}`).toMatch(/^0 /);
    for (const resource of [
      "mutatingwebhookconfigurations",
      "validatingwebhookconfigurations",
      "validatingadmissionpolicies",
      "validatingadmissionpolicybindings",
    ])
      expect([resource, await names(resource)]).toEqual([resource, []]);
    const crds = [
      "clusterpodschedulingpolicies.kupid.gardener.cloud",
      "labels.node-labels.openshift.io",
      "nodeguardoverrides.usher.dev",
      "nodeschedulingpolicies.scheduling.openshift.io",
      "ownedlabels.node-labels.openshift.io",
      "podschedulingpolicies.kupid.gardener.cloud",
      "podsecurityexceptions.usher.dev",
    ];
    expect(await left(cluster())).toEqual(crds.map((name) => `CustomResourceDefinition ${name}`));
    for (const { metadata } of OF_OLM)
      expect(
        await cluster().call(
          "GET",
          `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${at(metadata, "name")}`,
        ),
      ).toMatchObject({ metadata: { generation: 1, labels: { "olm.managed": "true" } } });
    for (const path of [LIMIT, PLACEMENT, LABELS, GUARD])
      expect([path, (await cluster().request("GET", path)).status]).toEqual([path, 200]);
    expect((await project("alice-3", ALICE)).status).toBe(201);
    expect((await project("alice-4", ALICE)).status).toBe(201);
    // The API server takes a moment to drop a ValidatingAdmissionPolicy.
    await eventually("an open control plane", async () => {
      return (await stage.pod({ ...SPEC, nodeName: "cp-0" }, { namespace: "default" })).status === 201;
    });
    const rest = await program(["uninstall", "--custom-resources", "--kubeconfig", kubeconfig]);
    expect(`${rest.code} ${rest.err}`).toMatch(/^0 /);
    await eventually("all of usher gone", async () => (await left(cluster())).length === 0);
  });
});
