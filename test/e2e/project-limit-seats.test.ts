// The exact count of project-limit under scarcity: an API server with four seats, callers other than an API server, and
// no usher at all.
import { expect, test } from "vitest";
import { at, stringAt } from "../../src/core/json.ts";
import { post, readyOf, serving } from "../cli/serving.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { calledWebhook, namespaceReview } from "./fixtures/forged-reviews.ts";
import {
  attempt,
  create,
  installLimits,
  ledgerOf,
  projectsBy,
  tenant,
  USAGES,
} from "./fixtures/project-limits.ts";

const SEATS = ["--max-requests-inflight=2", "--max-mutating-requests-inflight=2"];

function account(i: number) {
  return {
    user: `system:serviceaccount:default:creator-${i}`,
    groups: ["system:serviceaccounts", "system:serviceaccounts:default"],
  };
}

describeOwnCluster(
  "an exact limit on an API server with four seats",
  { flags: { "kube-apiserver": SEATS } },
  (cluster) => {
    test("of 200 parallel creations by service accounts of one namespace exactly ten succeed, and none fails otherwise", async () => {
      await installLimits(cluster(), [0, 1], {
        maxProjectsForServiceAccounts: 10,
        serviceAccountsPer: "Namespace",
      });
      const replies = await Promise.all(
        Array.from({ length: 200 }, (_, i) => create(cluster(), "Namespace", account(i), `seat-${i}`)),
      );
      const made = replies.filter(({ status }) => status === 201);
      const refused = replies.filter(({ body }) => stringAt(body, "message")?.includes("USHER-Q01"));
      expect([made.length, refused.length]).toEqual([10, 190]);
      const created = await projectsBy(cluster(), (requester) =>
        requester.startsWith("system:serviceaccount:default:"),
      );
      expect(created).toHaveLength(10);
      expect(await ledgerOf(cluster(), { serviceAccountsOf: "default" })).toEqual(created);
    });

    test("a caller that reaches a port of usher but is not an API server changes no ledger", async () => {
      const { origin, ca } = await calledWebhook(cluster());
      const reader = await serving([
        "--kubeconfig",
        await cluster().kubeconfig(),
        "--drain-seconds",
        "0",
        "-o",
        "json",
      ]);
      const { webhook, ca: own = "" } = readyOf(reader);
      const path = "/validate/project-limit-namespaces";
      for (const [url, trusted] of [
        [`${origin}${path}`, ca],
        [`${origin}/${"0".repeat(40)}${path}`, ca],
        [`${webhook}${path}`, own],
      ] as const) {
        const answer = JSON.parse(
          (
            await post(
              url,
              trusted,
              namespaceReview("victim", 1, "forged"),
              trusted === ca ? "usher.usher-system.svc" : undefined,
            )
          ).body,
        );
        expect(at(answer, "response", "allowed"), url).toBe(false);
        expect(at(answer, "response", "status", "code")).toBe(429);
        expect(at(answer, "response", "status", "details", "retryAfterSeconds")).toBe(1);
        expect(stringAt(answer, "response", "status", "message")).toContain("USHER-Q05");
      }
      expect((await cluster().request("GET", `${USAGES}/u-victim`)).status).toBe(404);
      // Four seats may be taken: then the API server asks to repeat the request.
      expect(await attempt(cluster(), "Namespace", tenant("victim", 1), "victim-1")).toMatchObject({
        status: 201,
      });
    });

    test("with every replica dead limited users are refused, and no other user waits", async () => {
      await cluster().call("PATCH", "/apis/apps/v1/namespaces/usher-system/deployments/usher/scale", {
        spec: { replicas: 0 },
      });
      const lonely = tenant("lonely", 1);
      await eventually("no usher", async () => {
        const reply = await create(cluster(), "Namespace", lonely, "lonely-1", { query: "?dryRun=All" });
        return reply.status === 500;
      });
      expect((await create(cluster(), "Namespace", lonely, "lonely-1")).status).toBe(500);
      const free = {
        user: "system:serviceaccount:kube-system:any",
        groups: ["system:masters", "system:serviceaccounts:kube-system"],
      };
      expect((await create(cluster(), "Namespace", free, "free-1")).status).toBe(201);
      expect(
        (await cluster().request("DELETE", "/api/v1/namespaces/victim-1", undefined, tenant("victim", 1)))
          .status,
      ).toBe(200);
      await eventually(
        "the namespace gone",
        async () => (await cluster().request("GET", "/api/v1/namespaces/victim-1")).status === 404,
      );
      expect(await ledgerOf(cluster(), { username: "lonely" })).toEqual([]);
    });
  },
);
