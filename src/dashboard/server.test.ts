import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dashboardOf, sessionOf } from "../../test/support/dashboard/dashboard.ts";
import type * as Model from "./model.ts";

const SOURCE = ["examples/cluster", "examples/every-module"];
const CONFIG = "examples/configurations/node-guard.yaml";

let dashboard: Awaited<ReturnType<typeof dashboardOf>>;
let cookie = "";

beforeAll(async () => {
  dashboard = await dashboardOf(SOURCE, CONFIG);
  cookie = await sessionOf(dashboard.server);
});
afterAll(() => dashboard.stop());

interface Raw {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

/** A request with headers that fetch does not let one set. */
function raw(
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
  body?: string,
): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const sent = request(`${dashboard.origin}${path}`, { method, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
      );
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const get = (path: string, headers: Record<string, string> = {}) => raw(path, { cookie, ...headers });

async function json<Body>(path: string): Promise<Body> {
  const { status, body } = await get(path);
  expect([path, status]).toEqual([path, 200]);
  return JSON.parse(body) as Body;
}

function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Raw> {
  const sent = { cookie, origin: dashboard.origin, "content-type": "application/json", ...headers };
  return raw(path, sent, "POST", typeof body === "string" ? body : JSON.stringify(body));
}

function errorOf({ body }: Raw): Model.ApiError["error"] {
  return (JSON.parse(body) as Model.ApiError).error;
}

describe("the token", () => {
  test("is exchanged once for a cookie that scripts can't read, and leaves the address", async () => {
    const own = await dashboardOf(SOURCE, CONFIG);
    try {
      const url = new URL(own.server.url);
      const deep = `${own.origin}/nodes?lens=guard&token=${url.searchParams.get("token")}`;
      const first = await fetch(deep, { redirect: "manual" });
      expect(first.status).toBe(303);
      expect(first.headers.get("location")).toBe("/nodes?lens=guard");
      expect(first.headers.get("set-cookie")).toMatch(
        /^usher-dashboard-\d+=\S{40,}; HttpOnly; SameSite=Strict; Path=\/$/,
      );
      const second = await fetch(deep, { redirect: "manual" });
      expect(second.headers.get("set-cookie")).toBeNull();
      expect(second.headers.get("location")).toBe("/nodes?lens=guard");
    } finally {
      await own.stop();
    }
  });

  test.each([
    ["missing", ""],
    ["wrong", "?token=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"],
    ["empty", "?token="],
  ])("that is %s gives no session, and the page says what to do", async (_what, query) => {
    const page = await raw(`/${query}`);
    expect(page.headers["set-cookie"]).toBeUndefined();
    const api = await raw(`/api/overview${query}`);
    expect(api.status).toBe(401);
    expect(errorOf(api).hint).toContain("usher dashboard printed");
  });

  test.each(["usher-dashboard-1=x", "other=1", "usher-dashboard=", ""])(
    "cookie %j is not a session",
    async (other) => {
      expect((await raw("/api/overview", { cookie: other })).status).toBe(401);
    },
  );

  test("never redirects to another host", async () => {
    const { status, headers } = await raw("//evil.example/?token=x");
    expect(status).toBe(303);
    expect(headers["location"]).toBe("/");
  });
});

describe("a request from elsewhere", () => {
  test.each([
    ["a rebound name", { host: "evil.example:80" }],
    ["another port", { host: "127.0.0.1:1" }],
    ["a foreign origin", { origin: "https://evil.example" }],
    ["a null origin", { origin: "null" }],
    ["another port of this machine", { origin: "http://127.0.0.1:1" }],
    ["another site", { "sec-fetch-site": "cross-site" }],
    ["another port, as a browser says it", { "sec-fetch-site": "same-site" }],
  ])("is refused with its cookie: %s", async (_what, headers) => {
    for (const path of ["/api/overview", "/api/events", "/", "/page.js"]) {
      const response = await get(path, headers);
      expect([path, response.status]).toEqual([path, 403]);
      expect(errorOf(response).message).toMatch(/Host|origin|site/);
    }
  });

  test("with POST must say its origin", async () => {
    const { status } = await raw(
      "/api/what-if",
      { cookie, "content-type": "application/json" },
      "POST",
      "{}",
    );
    expect(status).toBe(403);
  });

  test("gets no content type to sniff, no frame, no referrer and only this origin's scripts", async () => {
    for (const path of ["/", "/page.js", "/api/overview", "/api/none", "/nodes/anything"]) {
      const { headers } = await get(path);
      expect(headers["content-security-policy"]).toMatch(
        /default-src 'none'.*script-src 'self';.*frame-ancestors 'none'/,
      );
      expect(headers["content-security-policy"]).not.toContain("unsafe");
      expect(headers["x-content-type-options"]).toBe("nosniff");
      expect(headers["referrer-policy"]).toBe("no-referrer");
      expect(headers["cache-control"]).toBe("no-store");
      expect(headers["access-control-allow-origin"]).toBeUndefined();
    }
  });
});

describe("a bad call", () => {
  test.each([
    ["/api/none", 404],
    ["/api/map?lens=none", 404],
    ["/api/map?group=none", 404],
    ["/api/map?since=x", 400],
    ["/api/nodes/none", 404],
    ["/api/nodes/%E0%A4%A", 400],
    ["/api/pods/team-a/none", 404],
    ["/api/tables/none", 404],
    ["/api/explain?kind=Pod", 400],
    ["/api/explain?kind=Secret&name=x", 404],
    ["/api/manifest?kind=Pod&namespace=x&name=__proto__", 404],
    ["/none.js", 404],
  ])("%s answers %i and says what to do", async (path, status) => {
    const response = await get(path);
    expect(response.status).toBe(status);
    expect(errorOf(response).message).not.toBe("");
  });

  test.each([
    ["not JSON", "{", 400],
    ["a list", [], 400],
    ["an unknown field", { manifests: "", write: true }, 400],
    ["nothing to do", { manifests: " " }, 400],
    ["a wrong type", { manifests: 1 }, 400],
    ["a wrong list", { manifests: "", remove: [1] }, 400],
    ["an unknown node", { manifests: "", cordon: ["none"] }, 422],
    ["an unknown kind", { manifests: "", remove: ["none/x"] }, 422],
    ["a manifest with a mistake", { manifests: "kind: Pod\napiVersion: v1\nmetadata: { labels: [1] }" }, 422],
    ["no YAML", { manifests: "a: b: c" }, 422],
    ["a kind without effect", { manifests: "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: x }" }, 422],
  ])("a what-if with %s answers %j with %i", async (_what, body, status) => {
    const response = await post("/api/what-if", body);
    expect(response.status).toBe(status);
    expect(errorOf(response).message).not.toBe("");
  });

  test("problems of a manifest have their lines", async () => {
    const response = await post("/api/explain", {
      manifest: "apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\n  labels: [1]\n",
    });
    expect(errorOf(response).problems).toMatchObject([{ severity: "error", line: 5 }]);
  });

  test("another content type, another method and a body that is too large are refused", async () => {
    expect((await post("/api/what-if", "{}", { "content-type": "text/plain" })).status).toBe(415);
    expect((await post("/api/overview", {})).status).toBe(404);
    expect((await raw("/api/overview", { cookie, origin: dashboard.origin }, "DELETE")).status).toBe(405);
    const large = JSON.stringify({ manifests: "x".repeat(1_100_000) });
    const sent = await post("/api/what-if", large).catch(() => ({ status: 413 }));
    expect(sent.status).toBe(413);
  });

  test("leaves nothing to report: no call so far failed inside", () => {
    expect(dashboard.failures).toEqual([]);
  });
});

describe("the example cluster", () => {
  test("has every pod once in every lens and grouping", async () => {
    const { lenses, groupings, counts } = await json<Model.Overview>("/api/overview");
    expect(lenses.length).toBeGreaterThanOrEqual(4);
    for (const { name: lens } of lenses)
      for (const { name: group } of groupings) {
        const map = await json<Model.NodeMap>(`/api/map?lens=${lens}&group=${group}`);
        const cells = [...map.nodes.map((one) => one.cells), map.pending].flat();
        const total = cells.filter((_, i) => i % 2 === 1).reduce((sum, one) => sum + one, 0);
        expect([lens, group, total]).toEqual([lens, group, counts.pods]);
        expect(map.categories.reduce((sum, { count }) => sum + count, 0)).toBe(total);
        expect(map.groups.reduce((sum, { nodes }) => sum + nodes, 0)).toBe(counts.nodes);
        for (const node of map.nodes) expect(map.groups[node.group]).toBeDefined();
      }
  });

  test("shows one conflict, one drift, one refusal, two users at their limit, and report-0 on cp-0", async () => {
    const drift = await json<Model.NodeMap>("/api/map?lens=drift");
    expect(drift.categories.find(({ key }) => key === "drifted")?.count).toBe(1);
    const { policies } = await json<Model.PolicyList>("/api/policies");
    const conflicts = policies.filter((one) => one.conflicts.length > 0);
    expect(conflicts.map(({ id }) => id)).toEqual([
      "ClusterPodSchedulingPolicy/zone-a",
      "PodSchedulingPolicy/shop/reports-zone-b",
    ]);
    expect(conflicts[0]?.conflicts[0]).toMatchObject({ winner: { title: "shop/reports-zone-b" } });
    const refused = await json<Model.Explanations>(
      "/api/explain?kind=Deployment&namespace=payments&name=gateway",
    );
    expect(refused.explanations[0]).toMatchObject({ verdict: "deny", stored: true });
    const projects = await json<Model.Table>("/api/tables/projects");
    expect(
      projects.rows.filter(({ cells }) => cells[3]?.text === "at the limit").map(({ key }) => key),
    ).toEqual(["alice", "bob"]);
    const cp = await json<Model.NodeDetail>("/api/nodes/cp-0");
    expect(cp.pods.find(({ name }) => name === "report-0")?.values.map(({ key }) => key)).toContain(
      "informed",
    );
  });

  test("answers what enabling the guard would do, and gives the command line that says the same", async () => {
    const { yaml } = await json<Model.EditableManifest>(
      "/api/manifest?kind=NodeSchedulingPolicy&name=cluster",
    );
    const response = await post("/api/what-if", {
      manifests: yaml.replace("mode: Inform", "mode: Enable"),
      lens: "guard",
    });
    const result = JSON.parse(response.body) as Model.WhatIf;
    expect(result.edits).toEqual([{ name: "NodeSchedulingPolicy cluster", what: "changed" }]);
    expect(result.workloads).toMatchObject([{ object: { name: "report-0" }, effect: "refused" }]);
    const count = (map: Model.NodeMap, key: string) =>
      map.categories.find((one) => one.key === key)?.count ?? 0;
    expect([
      count(result.before, "informed"),
      count(result.after, "refused"),
      count(result.effects, "refused"),
    ]).toEqual([1, 1, 1]);
    expect(result.command).toMatch(
      /^usher what-if - --source examples\/cluster --source examples\/every-module <<'EOF'\n[\s\S]*mode: Enable[\s\S]*\nEOF$/,
    );
  });

  test("every link to a policy leads to a policy of the list", async () => {
    const { policies } = await json<Model.PolicyList>("/api/policies");
    const ids = new Set(policies.map(({ id }) => id));
    const text =
      (await get("/api/nodes/worker-0")).body +
      (await get("/api/explain?kind=Pod&namespace=shop&name=search-0")).body;
    const linked = [...text.matchAll(/"id":"([^"]+)"/g)].map((match) => match[1] ?? "");
    expect(linked.length).toBeGreaterThan(3);
    for (const id of linked) expect(ids).toContain(id);
  });

  test("search finds pods by a part of their name, and views by their title", async () => {
    const found = await json<Model.SearchResults>("/api/search?q=report-0");
    expect(found.results[0]).toMatchObject({
      what: "pod",
      object: { namespace: "team-a", name: "report-0" },
      note: "on cp-0",
    });
    expect(
      (await json<Model.SearchResults>("/api/search?q=projects")).results.some(({ what }) => what === "view"),
    ).toBe(true);
    expect((await json<Model.SearchResults>(`/api/search?q=${"x".repeat(5_000)}`)).results).toEqual([]);
  });
});
