import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { openPage } from "./browser.ts";
import { sendReview, startDashboard } from "./example.ts";

const root = dirname(dirname(import.meta.dirname));

/** A folder of files of its own, with a dashboard on it and a page that is signed in. */
async function pageOf(write: (folder: string) => void, path: string) {
  const folder = mkdtempSync(join(tmpdir(), "usher-files-"));
  write(folder);
  const dashboard = await startDashboard(["--source", folder]);
  onTestFinished(async () => {
    await dashboard.stop();
    rmSync(folder, { recursive: true });
  });
  const page = await openPage("/", {
    origin: dashboard.origin,
    cookie: "",
    allowed: /401|ERR_|status of 404/,
  });
  await page.goto(dashboard.url);
  await page.goto(`${dashboard.origin}${path}`);
  return { folder, page, origin: dashboard.origin };
}

const example = (folder: string) => cpSync(join(root, "examples", "cluster"), folder, { recursive: true });

test("a change of the files comes to the map and to the policies by itself", async () => {
  const { folder, page } = await pageOf(example, "/nodes");
  await page.locator("[data-node=cp-0]").waitFor();
  writeFileSync(
    join(folder, "added.yaml"),
    "apiVersion: v1\nkind: Node\nmetadata: { name: added-0, labels: { pool: added } }\n",
  );
  await page.locator("[data-node=added-0]").waitFor();
  await page.getByRole("heading", { name: /^added/ }).waitFor();
  rmSync(join(folder, "added.yaml"));
  await expect.poll(() => page.locator("[data-node=added-0]").count()).toBe(0);
  await page.getByRole("link", { name: "Policies", exact: true }).first().click();
  await page.getByText("etcd-pool").first().waitFor();
  const file = join(folder, "policies.yaml");
  writeFileSync(file, readFileSync(file, "utf8").replaceAll("etcd-pool", "moved-pool"));
  await page.getByText("moved-pool").first().waitFor();
  expect(await page.getByText("etcd-pool").count()).toBe(0);
});

test("a file that breaks is named with its line, and the last good version stays", async () => {
  const { folder, page } = await pageOf(example, "/policies");
  await page.getByText("etcd-pool").first().waitFor();
  writeFileSync(join(folder, "policies.yaml"), "kind: [\n");
  await page
    .getByText(/policies\.yaml:\d/)
    .first()
    .waitFor();
  expect(await page.getByText("etcd-pool").first().isVisible()).toBe(true);
});

test("a decision of the server appears in Live, can be held back, and opens Explain", async () => {
  // The pod of the last decision was never stored: Explain says so.
  const page = await openPage("/live", { allowed: /status of 404/ });
  await page.getByText("report-1").first().waitFor();
  const { webhook } = inject("example");
  const review = (name: string) =>
    sendReview(webhook, {
      path: "/mutate",
      namespace: "shop",
      name,
      user: "dora",
      labels: { app: "etcd", role: "main" },
    });
  await review("fresh-1");
  await page.getByText("shop/fresh-1").waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await review("fresh-2");
  await page.getByRole("button", { name: "Resume (1)" }).waitFor();
  expect(await page.getByText("shop/fresh-2").count()).toBe(0);
  await page.getByRole("button", { name: "Resume (1)" }).click();
  await page.getByText("shop/fresh-2").waitFor();
  await page.getByLabel("User").selectOption("dora");
  expect(await page.getByRole("row").count()).toBe(3);
  expect(page.url()).toContain("user=dora");
  await page.getByLabel("User").selectOption("");
  await page.getByText("Warned", { exact: true }).click();
  await expect.poll(() => page.getByText("shop/fresh-2").count()).toBe(0);
  await page.getByText("All", { exact: true }).first().click();
  await page
    .getByRole("link", { name: /etcd-main-0/ })
    .first()
    .click();
  await page.getByRole("heading", { name: "Explain" }).waitFor();
  expect(await page.getByRole("alert").innerText()).toContain("etcd-main-0");
});

const LONG = "n".repeat(253);
const MARKUP = "<img src=x onerror=alert(1)>";
const RIGHT_TO_LEFT = "\u202Eגנב\u202Cx";

/** Names that no API server would accept come from files. */
function hostile(folder: string): void {
  const objects = [
    {
      kind: "Node",
      metadata: {
        name: MARKUP,
        labels: { pool: "</script><script>alert(2)</script>", emoji: "🎉👩‍👩‍👧‍👦" },
        annotations: { note: "<script>alert(3)</script>" },
      },
    },
    { kind: "Node", metadata: { name: LONG, labels: { pool: LONG } } },
    { kind: "Node", metadata: { name: RIGHT_TO_LEFT, labels: { pool: RIGHT_TO_LEFT } } },
    {
      kind: "Namespace",
      metadata: { name: "shop", labels: { "pod-security.kubernetes.io/enforce": MARKUP } },
    },
    ...[MARKUP, LONG, RIGHT_TO_LEFT, '"><svg onload=alert(4)>', "javascript:alert(5)"].map((name) => ({
      kind: "Pod",
      metadata: {
        name,
        namespace: "shop",
        labels: { app: name },
        annotations: { "usher.dev/provenance": "<b onclick=alert(6)>" },
      },
      spec: {
        nodeName: LONG,
        containers: [{ name: "a", image: "a", env: [{ name: "SECRET", value: "not-to-be-seen" }] }],
      },
    })),
  ].map((object) => ({ apiVersion: "v1", ...object }));
  const policy = {
    apiVersion: "kupid.gardener.cloud/v1alpha1",
    kind: "ClusterPodSchedulingPolicy",
    metadata: { name: MARKUP },
    spec: { podSelector: {}, nodeSelector: { [MARKUP]: RIGHT_TO_LEFT } },
  };
  writeFileSync(
    join(folder, "all.yaml"),
    [...objects, policy].map((object) => JSON.stringify(object)).join("\n---\n"),
  );
}

test("hostile names run nothing and break no layout in any view", async () => {
  const { page, origin } = await pageOf(hostile, "/nodes");
  const nodes = await page.evaluate(
    "fetch('/api/map?group=&lens=').then((r) => r.json()).then((m) => m.nodes.map((n) => n.name))",
  );
  expect(nodes).toContain(MARKUP);
  const paths = [
    "/nodes",
    `/nodes?node=${encodeURIComponent(MARKUP)}`,
    `/nodes?node=${LONG}&pod=shop/${encodeURIComponent(MARKUP)}`,
    `/nodes?q=${encodeURIComponent(MARKUP)}&lens=${encodeURIComponent(MARKUP)}&only=${encodeURIComponent(MARKUP)}`,
    "/policies",
    `/policies?policy=${encodeURIComponent(`ClusterPodSchedulingPolicy/${MARKUP}`)}`,
    `/explain?kind=Pod&namespace=shop&name=${encodeURIComponent(MARKUP)}`,
    `/explain?kind=Pod&namespace=shop&name=${LONG}`,
    `/what-if?edit=Node//${encodeURIComponent(MARKUP)}`,
    "/tables/pod-security?row=shop",
    "/tables/projects",
    `/live?user=${encodeURIComponent(MARKUP)}`,
    `/tables/${encodeURIComponent(MARKUP)}`,
  ];
  for (const path of paths) {
    await page.goto(`${origin}${path}`);
    await page.getByRole("heading").first().waitFor({ state: "attached" });
    for (const width of [1_024, 1_440]) {
      await page.setViewportSize({ width, height: 900 });
      const wider = () => page.evaluate("document.documentElement.scrollWidth - innerWidth");
      await expect.poll(wider, { message: `${path} at ${width} px` }).toBe(0);
    }
    expect([
      path,
      await page.evaluate(
        "document.querySelectorAll('img, [onerror], [onload], [onclick], script:not([src])').length",
      ),
    ]).toEqual([path, 0]);
    expect([path, (await page.content()).includes("not-to-be-seen")]).toEqual([path, false]);
  }
  await page.goto(`${origin}/nodes`);
  await page.getByRole("heading").first().waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Search" }).fill("<");
  await page.getByRole("option").first().waitFor();
  expect(await page.evaluate("document.querySelectorAll('img').length")).toBe(0);
});

test("5,000 nodes with 150,000 pods keep few tiles in the document, and each can be reached", async () => {
  const page = await openPage("/nodes");
  await page.locator("[data-node=cp-0]").waitFor();
  const categories = [0, 1, 2].map((index) => ({
    key: `k${index}`,
    title: `policy-${index}`,
    tone: "plain",
    colour: index,
    count: 50_000,
  }));
  const groups = Array.from({ length: 20 }, (_, index) => ({
    key: `g${index}`,
    title: `pool-${index}`,
    nodes: 250,
    pods: 7_500,
  }));
  const nodes = Array.from({ length: 5_000 }, (_, index) => ({
    name: `node-${index}`,
    group: Math.floor(index / 250),
    cells: [0, 10, 1, 10, 2, 10],
    tags: [],
  }));
  const map = {
    revision: 1,
    lens: "policy",
    group: "pool",
    categories,
    groups,
    nodes,
    pending: [],
    whole: true,
    gone: [],
  };
  await page.route("**/api/map?**", (route) => route.fulfill({ json: map }));
  await page.reload();
  await page.locator("[data-node=node-0]").waitFor();
  expect(await page.locator("[data-node]").count()).toBeLessThan(1_000);
  await page.locator("[data-node=node-0]").focus();
  await page.keyboard.press("End");
  await expect.poll(() => page.evaluate("document.activeElement.dataset.node")).toBe("node-4999");
  expect(await page.locator("[data-node]").count()).toBeLessThan(1_000);
  await page.getByLabel("Filter").fill("node-4321");
  await page.locator("[data-node=node-4321]").waitFor();
  expect(await page.locator("[data-node]").count()).toBe(1);
});
