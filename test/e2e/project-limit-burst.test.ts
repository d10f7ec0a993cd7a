// Two hundred concurrent creations, against three installed replicas of project-limit and the real API server. Nothing
// else runs beside it: a creation that waits longer than the hook's 5 s is a failure.
import { afterAll, beforeAll, expect, test } from "vitest";
import { post } from "../cli/serving.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { calledWebhook, namespaceReview } from "./fixtures/forged-reviews.ts";
import { configured } from "./fixtures/install.ts";
import {
  attempt,
  create,
  installLimits,
  ledgerOf,
  type ProjectKind,
  projectsOf,
  removeProjects,
  tenant,
} from "./fixtures/project-limits.ts";
import { webhookClient } from "./fixtures/webhook-client.ts";

/** `npm run test:long` runs it a hundred times. */
const RUNS = Number(process.env["USHER_LEDGER_RUNS"] ?? 1);
const PARALLEL = 200;

/** The wall clocks of the replicas differ by up to two minutes. */
const IMAGES = { usher: ["node", "--import", "./test/e2e/fixtures/shifted-clock.mjs", "src/cli/main.ts"] };

const client = await webhookClient();
const FLAGS = { "kube-apiserver": client.flags };

describeOwnCluster(
  "an exact limit, two hundred concurrent creations",
  { images: IMAGES, flags: FLAGS },
  (cluster) => {
    afterAll(() => client[Symbol.dispose]());

    beforeAll(async () => {
      const { clientCa } = client;
      await installLimits(cluster(), [0, 1, 10, 150], {}, ...configured({ clientCa }));
    });

    test("a client that knows the path but has no certificate of an API server reserves nothing", async () => {
      const webhook = await calledWebhook(cluster());
      const path = `${webhook.origin}/${webhook.token}/validate/project-limit-namespaces`;
      const review = namespaceReview("victim", 1, "forged");
      const answer = await post(path, webhook.ca, review, "usher.usher-system.svc");
      expect(answer).toMatchObject({ status: 401, body: expect.stringContaining("client certificate") });
      expect(await ledgerOf(cluster(), "victim")).toEqual([]);
      expect((await create(cluster(), "Namespace", tenant("victim", 1), "victim-1")).status).toBe(201);
    });

    test.each<[ProjectKind, number]>([
      ["Namespace", 10],
      ["Namespace", 150],
      ["ProjectRequest", 10],
      ["ProjectRequest", 150],
    ])(
      "of 200 parallel creations as %s at limit %i exactly the limit succeed, each time",
      async (kind, limit) => {
        const times: number[] = [];
        let repeated = 0;
        for (let run = 0; run < RUNS; run++) {
          const user = `${kind.toLowerCase()}-${limit}-${run}`;
          const by = tenant(user, limit);
          const results = await Promise.all(
            Array.from({ length: PARALLEL }, (_, i) => attempt(cluster(), kind, by, `${user}-${i}`)),
          );
          const made = results.filter(({ status }) => status === 201);
          const refused = results.filter(({ message }) => message.includes("USHER-Q01"));
          const others = results.filter((one) => !made.includes(one) && !refused.includes(one));
          // If usher had not answered within its 5 s, a 500 would be among them.
          expect(others).toEqual([]);
          expect(made).toHaveLength(limit);
          expect(await projectsOf(cluster(), user)).toHaveLength(limit);
          // A client that repeated a 429 may have left a reservation of the same name.
          expect([...new Set(await ledgerOf(cluster(), user))]).toEqual(await projectsOf(cluster(), user));
          times.push(...results.map(({ ms }) => ms));
          repeated += results.reduce((sum, { busy }) => sum + busy, 0);
          if (RUNS > 1) await removeProjects(cluster(), user);
        }
        times.sort((a, b) => a - b);
        const p99 = times[Math.floor(times.length * 0.99)] ?? 0;
        console.log(
          `${kind} at limit ${limit}: ${RUNS} times ${PARALLEL} in parallel, p50 ${Math.round(times[times.length >> 1] ?? 0)} ms, p99 ${Math.round(p99)} ms, slowest ${Math.round(times.at(-1) ?? 0)} ms, 429 repeated ${repeated} times`,
        );
      },
      60_000 * RUNS,
    );

    test("dry runs and users without a limit write no ledger", async () => {
      const one = tenant("dry", 1);
      for (const kind of ["Namespace", "ProjectRequest"] as const)
        expect((await create(cluster(), kind, one, "dry-1", { query: "?dryRun=All" })).status).toBe(201);
      const free = { user: "free", groups: ["tenants"] };
      expect((await create(cluster(), "Namespace", free, "free-1")).status).toBe(201);
      expect(await ledgerOf(cluster(), "dry")).toEqual([]);
      expect(await ledgerOf(cluster(), "free")).toEqual([]);
    });

    test("only usher and administrators can write ledgers", async () => {
      const path = "/apis/usher.dev/v1alpha1/projectusages";
      const groups = ["cluster-wide-admins"];
      await cluster().apply({
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRoleBinding",
        metadata: { name: "cluster-wide-admins" },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "admin" },
        subjects: [{ kind: "Group", apiGroup: "rbac.authorization.k8s.io", name: "cluster-wide-admins" }],
      });
      const forged = { metadata: { name: "u-mallory" }, spec: { subject: "mallory", entries: [] } };
      for (const [method, at] of [
        ["POST", path],
        ["DELETE", `${path}/u-free`],
      ] as const)
        expect((await cluster().request(method, at, forged, { user: "mallory", groups })).status).toBe(403);
    });
  },
);
