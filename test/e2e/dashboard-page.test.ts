// Every view of the dashboard in a real Chromium, on a real control plane.
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeOwnCluster } from "../cluster/describe.ts";
import { pageIn } from "../dashboard/browser.ts";
import { startChromium } from "../dashboard/chromium.ts";
import { startDashboard } from "../dashboard/example.ts";
import { install } from "./fixtures/install.ts";

const POLICY = {
  apiVersion: "kupid.gardener.cloud/v1alpha1",
  kind: "ClusterPodSchedulingPolicy",
  metadata: { name: "etcd-pool" },
  spec: {
    namespaceSelector: {},
    podSelector: { matchLabels: { app: "etcd" } },
    nodeSelector: { pool: "etcd" },
  },
};

const pod = (name: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "shop", labels: { app: "etcd" } },
  spec: { containers: [{ name: "app", image: "app:1" }] },
});

describeOwnCluster("the page of the dashboard on a cluster", {}, (cluster) => {
  let server: Awaited<ReturnType<typeof startChromium>> | undefined;
  let browser: Browser | undefined;

  beforeAll(async () => {
    server = await startChromium();
    browser = await chromium.connect(server.wsEndpoint());
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    await server?.close();
  });

  /** A dashboard with the rights of a kubeconfig, and a page that is signed in there. */
  async function open(
    kubeconfig: string,
  ): Promise<{ page: Page; origin: string; stop: () => Promise<void> }> {
    if (browser === undefined) throw new Error("no browser");
    const dashboard = await startDashboard(["--kubeconfig", kubeconfig]);
    const page = await pageIn(browser, dashboard.origin, { allowed: /401|ERR_|status of 4/ });
    await page.goto(dashboard.url);
    return { page, origin: dashboard.origin, stop: dashboard.stop };
  }

  test("shows a cluster with usher in every view, and its changes as they come", async () => {
    await cluster().createNode("worker-0");
    await cluster().createNode("etcd-0", { labels: { pool: "etcd" } });
    await install(cluster());
    await cluster().apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } }, POLICY);
    const { page, origin, stop } = await open(await cluster().kubeconfig());
    try {
      await page.locator("[data-node=etcd-0]").waitFor();
      await page.getByText("live", { exact: true }).waitFor();

      await cluster().createNode("late-0", { labels: { pool: "late" } });
      await page.locator("[data-node=late-0]").waitFor();
      await cluster().call("DELETE", "/api/v1/nodes/late-0");
      await expect.poll(() => page.locator("[data-node=late-0]").count(), { timeout: 15_000 }).toBe(0);

      await page.getByRole("link", { name: "Policies", exact: true }).first().click();
      await page.getByText("etcd-pool").first().waitFor();

      await page.goto(`${origin}/nodes`);
      await page.locator("[data-node=etcd-0]").waitFor();
      await cluster().apply(pod("db-0"));
      await expect
        .poll(() => page.locator("[data-node=etcd-0]").textContent(), { timeout: 30_000 })
        .toMatch(/[1-9]\d* pods?: /);

      await page.goto(`${origin}/explain?kind=Pod&namespace=shop&name=db-0`);
      await page.getByText("Where it may run").waitFor();

      await page.goto(`${origin}/what-if?edit=ClusterPodSchedulingPolicy//etcd-pool`);
      const editor = page.getByLabel("Manifests after the edit");
      await expect.poll(() => editor.inputValue()).toContain("pool: etcd");
      await editor.fill((await editor.inputValue()).replace("pool: etcd", "pool: nowhere"));
      expect(await page.getByRole("checkbox", { name: /API server/ }).isChecked()).toBe(false);
      await page.getByRole("button", { name: "Show what changes" }).click();
      const effects = page.getByRole("region", { name: "Effects" });
      await expect.poll(() => effects.innerText(), { timeout: 60_000 }).toMatch(/shop\/db-0/);

      await page.goto(`${origin}/tables/pod-security`);
      await page.getByRole("rowheader", { name: "shop" }).waitFor();
      await page.goto(`${origin}/tables/projects`);
      await page.getByRole("heading", { name: "Projects" }).waitFor();
      await page.goto(`${origin}/live`);
      await page.getByRole("heading", { name: "Live" }).waitFor();
    } finally {
      await stop();
    }
  });

  test("says that the API server went away, and that it is back", async () => {
    const { page, stop } = await open(await cluster().kubeconfig());
    try {
      await page.locator("[data-node=etcd-0]").waitFor();
      const api = cluster().component("kube-apiserver");
      await api.stop("at once");
      await page.getByText("The API server can't be read now").waitFor({ timeout: 60_000 });
      expect(await page.locator("[data-node=etcd-0]").isVisible()).toBe(true);
      await api.start();
      await expect
        .poll(() => page.getByText("The API server can't be read now").count(), { timeout: 60_000 })
        .toBe(0);
    } finally {
      await stop();
    }
  });

  test("names the resources that a person may not read, and shows none of their data", async () => {
    const { page, stop } = await open(await cluster().kubeconfig("visitor", ["visitors"]));
    try {
      await page.getByText("Some resources can't be read").waitFor({ timeout: 60_000 });
      const main = page.getByRole("main");
      await expect
        .poll(() => main.innerText(), { timeout: 60_000 })
        .toContain("You may not list nodes on this cluster");
      expect(await page.locator("[data-node]").count()).toBe(0);
    } finally {
      await stop();
    }
  });
});
