import { expect, test } from "vitest";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import { isObject, type JsonObject, stringAt } from "../../src/core/json.ts";
import { flowControl } from "../../src/core/registration/flow-control.ts";
import type { ClusterAccess } from "../cluster/access/access.ts";
import { eventually } from "../cluster/access/wait.ts";
import { createNamespace, describeCluster, describeOwnCluster } from "../cluster/describe.ts";
import { UNSURE } from "./fixtures/counting.ts";
import { Ushers } from "./fixtures/ushers.ts";

const ACCOUNT = { user: "system:serviceaccount:usher-system:usher", groups: ["system:serviceaccounts"] };

interface Outcome {
  readonly created: number;
  readonly refused: number;
  readonly unsure: number;
  readonly others: readonly string[];
  /** Entries of the ledger. */
  readonly counted: number;
  /** The statuses of the API server's responses to the processes: `PUT 409`. */
  readonly spoken: Readonly<Record<string, number>>;
}

interface Trial {
  readonly requests: number;
  readonly limit: number;
  readonly timeoutSeconds: number;
  readonly creator: (i: number) => { readonly user: string; readonly groups?: readonly string[] };
}

/** Allows usher to write its ledger, and the service accounts of `default` to create, in one namespace. */
function rights(namespace: string): JsonObject {
  const apiGroup = "rbac.authorization.k8s.io";
  return {
    apiVersion: `${apiGroup}/v1`,
    kind: "RoleBinding",
    metadata: { name: "counting", namespace },
    roleRef: { apiGroup, kind: "ClusterRole", name: "edit" },
    subjects: [
      { apiGroup, kind: "User", name: ACCOUNT.user },
      { apiGroup, kind: "Group", name: "system:serviceaccounts:default" },
    ],
  };
}

/** Usher's own priority level and flow schema, in use: a response names the schema of its request. */
async function useFlowControl(cluster: ClusterAccess): Promise<void> {
  await cluster.apply(...flowControl(DEFAULT_INSTALLATION));
  const schema = await cluster.call("GET", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/usher");
  const uid = stringAt(schema, "metadata", "uid");
  await eventually("the flow schema to take effect", async () => {
    const { headers } = await cluster.request("GET", "/api/v1/namespaces/default", undefined, ACCOUNT);
    return headers["x-kubernetes-pf-flowschema-uid"] === uid;
  });
}

/** This many concurrent ConfigMaps through the API server, which calls three usher processes behind one address. */
async function attempt(cluster: ClusterAccess, trial: Trial): Promise<Outcome> {
  const namespace = await createNamespace(cluster);
  const counting = { namespace, ledger: "ledger", limit: trial.limit };
  const kubeconfig = await cluster.kubeconfig(ACCOUNT.user, ACCOUNT.groups);
  const ushers = await Ushers.start(3, kubeconfig, counting);
  const configuration = `counting-${namespace}`;
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  try {
    await cluster.route("127.0.0.1", ushers.port, ushers.port);
    await cluster.apply(rights(namespace), {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingWebhookConfiguration",
      metadata: { name: configuration },
      webhooks: [
        {
          name: "counting.usher.dev",
          clientConfig: {
            url: `https://127.0.0.1:${ushers.port}/validate/counting`,
            caBundle: ushers.caBundle,
          },
          rules: [
            { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] },
          ],
          namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
          objectSelector: { matchLabels: { guest: "yes" } },
          admissionReviewVersions: ["v1"],
          sideEffects: "NoneOnDryRun",
          timeoutSeconds: trial.timeoutSeconds,
        },
      ],
    });
    const create = (name: string, i: number, query = "") =>
      cluster.request(
        "POST",
        `${path}${query}`,
        { metadata: { name, labels: { guest: "yes" } } },
        trial.creator(i),
      );
    // A dry run reads the ledger and leaves no trace, so it may be repeated until the hook is known.
    await eventually("the hook to be called", async () => {
      await create("probe", 0, "?dryRun=All");
      const spoken = await ushers.spoken();
      return spoken.some((one) => Object.keys(one).length > 0);
    });
    const replies = await Promise.all(
      Array.from({ length: trial.requests }, (_, i) => create(`guest-${i}`, i)),
    );
    const said = replies.map(({ status, body }) => `${status} ${stringAt(body, "message") ?? ""}`);
    const ledger = await cluster.request("GET", `${path}/ledger`);
    const data = isObject(ledger.body) && isObject(ledger.body["data"]) ? ledger.body["data"] : {};
    const spoken: Record<string, number> = {};
    for (const one of await ushers.spoken())
      for (const [what, count] of Object.entries(one)) spoken[what] = (spoken[what] ?? 0) + count;
    return {
      created: said.filter((one) => one.startsWith("201")).length,
      refused: said.filter((one) => one.includes("are enough")).length,
      unsure: said.filter((one) => one.includes(UNSURE)).length,
      others: said.filter((one) => !/^201|are enough/.test(one) && !one.includes(UNSURE)),
      counted: Object.keys(data).length,
      spoken,
    };
  } finally {
    await cluster.request(
      "DELETE",
      `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${configuration}`,
    );
    await cluster.unroute("127.0.0.1", ushers.port);
    await ushers.stop();
    await cluster.request("DELETE", `/api/v1/namespaces/${namespace}`);
  }
}

describeCluster("counting over three replicas", (cluster) => {
  test.each([10, 150])("of 200 concurrent requests exactly %i are admitted", async (limit) => {
    const outcome = await attempt(cluster(), {
      requests: 200,
      limit,
      timeoutSeconds: 30,
      creator: () => ({ user: "ann", groups: ["system:masters"] }),
    });
    expect(outcome).toMatchObject({ created: limit, refused: 200 - limit, counted: limit, others: [] });
    // Many reservations per write: with one each, there would be as many writes as requests, and several conflicts for
    // each.
    const { spoken } = outcome;
    const writes = (spoken["POST 201"] ?? 0) + (spoken["PUT 200"] ?? 0);
    const conflicts = (spoken["POST 409"] ?? 0) + (spoken["PUT 409"] ?? 0);
    expect(writes).toBeLessThanOrEqual(limit);
    expect(conflicts).toBeLessThan(100);
  });
});

const SEATS = ["--max-requests-inflight=2", "--max-mutating-requests-inflight=2"];

describeOwnCluster(
  "counting on an API server with four seats, for service accounts",
  { flags: { "kube-apiserver": SEATS }, without: ["kube-scheduler", "kwok"] },
  (cluster) => {
    const creator = (i: number) => ({
      user: `system:serviceaccount:default:creator-${i}`,
      groups: ["system:serviceaccounts", "system:serviceaccounts:default"],
    });

    test("without its own priority level usher waits for seats held by its callers", async () => {
      const outcome = await attempt(cluster(), { requests: 16, limit: 10, timeoutSeconds: 1, creator });
      expect(outcome.created).toBeLessThan(10);
      expect(outcome.others.length + outcome.unsure).toBeGreaterThan(0);
    });

    test("with it 200 concurrent requests are answered, and exactly 10 are admitted", async () => {
      await useFlowControl(cluster());
      const outcome = await attempt(cluster(), { requests: 200, limit: 10, timeoutSeconds: 30, creator });
      expect(outcome).toMatchObject({ created: 10, counted: 10, unsure: 0, others: [] });
    });
  },
);
