import { beforeEach, expect, test } from "vitest";
import { Renewer } from "../../src/cli/drift/renew.ts";
import {
  type ApiResponse,
  type Client,
  ConnectionError,
  type RequestOptions,
} from "../../src/cluster/client/client.ts";
import type { Json, JsonObject } from "../../src/core/json.ts";
import { workloadTable } from "../../src/core/kubernetes/workloads.ts";
import { moduleThat } from "../builders/module.ts";
import { deployment } from "../builders/pod.ts";

const ANNOTATION = "usher.dev/reapply";
const MODULE = {
  ...moduleThat("seating", {}),
  driftScan: { annotation: ANNOTATION, leftAlone: () => undefined },
};
const WORKLOAD = workloadTable().byKind("apps", "Deployment");
if (WORKLOAD === undefined) throw new Error("no Deployment");
const CHOSEN = { workload: WORKLOAD, namespace: "shop", name: "web" };

const STORED = deployment({ metadata: { resourceVersion: "7" }, spec: { nodeSelector: { pool: "etcd" } } });
const RENEWED = deployment({ metadata: { resourceVersion: "8" }, spec: { nodeSelector: { pool: "nvme" } } });
const UNHEARD = deployment({ metadata: { resourceVersion: "8" }, annotations: { [ANNOTATION]: "cli" } });

let sent: { method: string; path: string; body: Json | undefined }[];

let gone = false;

beforeEach(() => {
  gone = false;
  sent = [];
});

const answer = (status: number, body: JsonObject, headers: Record<string, string> = {}): ApiResponse => ({
  status,
  headers,
  body,
  text: "",
});
const refusal = (status: number, message: string) => answer(status, { kind: "Status", message });

/** Reads give the stored object; writes are answered in turn. */
function renewer(...answers: readonly ApiResponse[]): Renewer {
  const left = [...answers];
  const client: Client = {
    server: "https://test",
    request: async (method: string, path: string, options: RequestOptions = {}) => {
      if (gone) throw new ConnectionError("reset");
      sent.push({ method, path, body: options.body });
      return method === "GET" ? answer(200, STORED) : (left.shift() ?? refusal(500, "not expected"));
    },
    stream: () => Promise.reject(new Error("not expected")),
    close: () => undefined,
  };
  const resources = {
    pathOf: async (resource: string, namespace = "", name = "") => `/${resource}/${namespace}/${name}`,
    discover: async () => undefined,
  };
  return new Renewer(client, resources, MODULE);
}

const GUARD = (version: string) => ({ op: "add", path: "/metadata/resourceVersion", value: version });

test("asks by the annotation, bound to the version that was read, and says what came of it", async () => {
  const warned = answer(200, RENEWED, { warning: '299 - "one \\"a\\"", 299 - "two"' });
  expect(await renewer(warned).renew(CHOSEN)).toEqual({
    changes: ["~ nodeSelector.pool etcd -> nvme"],
    warnings: ['one "a"', "two"],
  });
  expect(sent[1]).toEqual({
    method: "PATCH",
    path: "/deployments.apps/shop/web?fieldManager=usher-reapply",
    body: [{ op: "add", path: "/metadata/annotations", value: { [ANNOTATION]: "cli" } }, GUARD("7")],
  });
});

test("tries out without storing anything", async () => {
  expect(await renewer(answer(200, RENEWED)).tryOut(CHOSEN)).toMatchObject({ changes: [expect.any(String)] });
  expect(sent.filter(({ method }) => method !== "GET").map(({ path }) => path)).toEqual([
    expect.stringContaining("dryRun=All"),
  ]);
});

test("an API server that goes away ends what has not begun, and is told of what has", async () => {
  const broken = renewer();
  gone = true;
  await expect(broken.tryOut(CHOSEN)).rejects.toThrow("reset");
  expect(await broken.renew(CHOSEN)).toEqual({ failed: "Deployment shop/web: no answer: reset" });
});

test("an object that stays as it is has no changes", async () => {
  expect(await renewer(answer(200, STORED)).renew(CHOSEN)).toEqual({ changes: [], warnings: [] });
});

test("somebody else wrote: it is read anew and asked for again, but not for ever", async () => {
  const conflict = refusal(409, "conflict");
  expect(await renewer(conflict, conflict, answer(200, RENEWED)).renew(CHOSEN)).toHaveProperty("changes");
  expect(sent.map(({ method }) => method).join(" ")).toBe("GET PATCH GET PATCH GET PATCH");
  const failed = await renewer(...Array.from({ length: 9 }, () => conflict)).renew(CHOSEN);
  expect(failed).toMatchObject({ failed: expect.stringContaining("409") });
});

test("where usher does not answer, the request does not stay in the object", async () => {
  const failed = await renewer(answer(200, UNHEARD), answer(200, STORED)).renew(CHOSEN);
  expect(failed).toMatchObject({ failed: expect.stringContaining("usher did not answer") });
  expect(sent.at(-1)?.body).toEqual([
    { op: "remove", path: "/metadata/annotations/usher.dev~1reapply" },
    GUARD("8"),
  ]);
  sent = [];
  // Of a dry run nothing stays anyway.
  expect(await renewer(answer(200, UNHEARD)).tryOut(CHOSEN)).toHaveProperty("failed");
  expect(sent.map(({ method }) => method)).toEqual(["GET", "PATCH"]);
});

test.each([
  [
    refusal(403, 'deployments.apps "web" is forbidden: User "dev" cannot patch'),
    /^you may not change it: .*cannot patch/,
  ],
  [refusal(403, 'admission webhook "x" denied the request: no'), /^admission webhook/],
  [refusal(500, "broken"), /500: broken/],
])("a refusal is told as what it is: %#", async (refused, said) => {
  expect(await renewer(refused).renew(CHOSEN)).toMatchObject({ failed: expect.stringMatching(said) });
});
