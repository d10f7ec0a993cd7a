import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import axe from "axe-core";
import type { Locator, Page } from "playwright-core";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { bundlePage } from "../../scripts/page.mjs";
import { openPage } from "./browser.ts";
import { startDashboard } from "./example.ts";

/** Every view, each with something opened in it, and a text that says that it is there. */
const VIEWS: readonly (readonly [name: string, path: string, text: string])[] = [
  ["the map", "/nodes", "worker-0"],
  [
    "a node and a pod of the map",
    "/nodes?lens=guard&group=guarded&node=cp-0&pod=team-a/report-0",
    "No entry of group ControlPlane",
  ],
  ["the policies", "/policies", "etcd-pool"],
  ["a policy", "/policies?policy=ClusterPodSchedulingPolicy/zone-a", "Conflicts"],
  ["the start of Explain", "/explain", "Choose an object"],
  ["the explanation of a pod", "/explain?kind=Pod&namespace=team-a&name=report-0", "Where it may run"],
  ["a manifest to paste", "/explain?paste=1", "The manifest stays on this machine"],
  ["the start of What if", "/what-if", "The effects appear here"],
  ["Pod Security", "/tables/pod-security?row=payments", "To fix it"],
  ["Projects", "/tables/projects?row=alice", "at the limit"],
  ["Live", "/live", "report-1"],
];

/** Violations as text, so that a red line says what and where. */
async function violations(page: Page): Promise<string[]> {
  // The policy of the page forbids scripts of others: the protocol of the browser runs it in the page all the same.
  await page.evaluate(axe.source);
  const found = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })");
  const { violations: list } = found as axe.AxeResults;
  return list.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html }) => `${id}: ${help}: ${html.slice(0, 200)}`),
  );
}

/** Whether the document is wider than its window. */
async function overflow(page: Page): Promise<number> {
  return Number(await page.evaluate("document.documentElement.scrollWidth - innerWidth"));
}

async function setManifest(page: Page, from: string, to: string): Promise<void> {
  const editor = page.getByLabel("Manifests after the edit");
  await expect.poll(() => editor.inputValue()).toContain(from);
  await editor.fill((await editor.inputValue()).replace(from, to));
}

/** In light and in dark colours. */
async function expectAccessible(page: Page): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect([colorScheme, ...(await violations(page))]).toEqual([colorScheme]);
  }
}

describe("axe-core, in light and dark", () => {
  test.each(VIEWS)("finds no violation in %s", async (_, path, text) => {
    const page = await openPage(path);
    await page.getByText(text).first().waitFor();
    await expectAccessible(page);
  });

  test("finds no violation in the effects of an edit and in the search", async () => {
    const page = await openPage("/what-if?edit=NodeSchedulingPolicy//cluster");
    await setManifest(page, "Inform", "Enable");
    await page.getByRole("button", { name: "Show what changes" }).click();
    await page.getByText("Workloads that differ").waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Search" }).fill("report");
    await page.getByRole("option", { name: /team-a\/report-0/ }).waitFor();
    await expectAccessible(page);
  });
});

describe("windows and paper", () => {
  test("no view is wider than its window, from 420 px to 2,560 px", async () => {
    const page = await openPage("/nodes");
    for (const [, path, text] of VIEWS) {
      await page.goto(new URL(path, page.url()).href);
      await page.getByText(text).first().waitFor();
      for (const width of [420, 860, 861, 1_024, 1_440, 2_560]) {
        await page.setViewportSize({ width, height: 900 });
        await expect.poll(() => overflow(page), { message: `${path} at ${width} px` }).toBe(0);
      }
    }
  });

  test("the navigation of a narrow window has every view in one line", async () => {
    const page = await openPage("/nodes", { viewport: { width: 1_024, height: 768 } });
    const views = page.getByRole("navigation", { name: "Views" }).getByRole("link");
    await expect.poll(() => views.count()).toBe(7);
    const tops = await views.evaluateAll((links) => links.map((link) => link.getBoundingClientRect().top));
    expect(new Set(tops).size).toBe(1);
    const last = await views.last().boundingBox();
    const search = await page.getByRole("button", { name: /Search/ }).boundingBox();
    expect((last?.x ?? 0) + (last?.width ?? 0)).toBeLessThan(search?.x ?? 0);
  });

  test("the header of a phone shows every part and the present view, and the panel covers the map", async () => {
    const page = await openPage("/tables/projects", { viewport: { width: 420, height: 800 } });
    await page.getByRole("heading", { name: "Projects" }).waitFor();
    const inside = async (part: Locator): Promise<void> => {
      await expect
        .poll(async () => {
          const box = await part.boundingBox();
          return box !== null && box.x >= 0 && box.x + box.width <= 420;
        })
        .toBe(true);
    };
    await inside(page.getByRole("link", { name: "Usher: nodes" }));
    await inside(page.getByRole("button", { name: /Search/ }));
    await inside(page.getByRole("button", { name: /Colours/ }));
    await inside(page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Projects" }));
    await page.goto(new URL("/nodes?node=cp-0", page.url()).href);
    const panel = page.getByRole("complementary");
    await panel.waitFor();
    expect((await panel.boundingBox())?.width).toBe(420);
    await panel.getByRole("link", { name: "Close" }).click();
    await panel.waitFor({ state: "detached" });
  });

  test("paper has the map and the panel, and neither navigation nor controls", async () => {
    const page = await openPage("/nodes?node=cp-0");
    await page.getByRole("heading", { name: "cp-0" }).waitFor();
    const tiles = () => page.locator("[data-node]").count();
    // The map is drawn once it was measured, in the frame after the panel.
    await expect.poll(tiles).toBe(7);
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    expect(await page.getByRole("navigation", { name: "Views" }).isVisible()).toBe(false);
    expect(await page.getByLabel("Colour by").isVisible()).toBe(false);
    expect(await page.getByRole("heading", { name: "cp-0" }).isVisible()).toBe(true);
    await expect.poll(tiles).toBe(7);
    const background = await page.evaluate("getComputedStyle(document.documentElement).backgroundColor");
    expect(background).toBe("rgb(255, 255, 255)");
    expect((await page.pdf()).length).toBeGreaterThan(10_000);
  });
});

describe("the address", () => {
  test("is the state: lens, group, node and pod come from it, and go into it", async () => {
    const page = await openPage("/nodes");
    await page.getByLabel("Colour by").selectOption("guard");
    await page.getByLabel("Group by").selectOption("guarded");
    // The tile in the new group is another element.
    await page.getByRole("heading", { name: /^ControlPlane/ }).waitFor();
    await page.locator("[data-node=cp-0]").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: /team-a\/report-0/ }).click();
    const link = page.url();
    expect(link).toMatch(/lens=guard.*node=cp-0.*pod=team-a\/report-0/);
    const other = await openPage(link.slice(link.indexOf("/nodes")));
    await other.getByText("No entry of group ControlPlane").waitFor();
    expect(await other.locator("[data-node=cp-0]").getAttribute("aria-pressed")).toBe("true");
    expect(await other.getByLabel("Colour by").inputValue()).toBe("guard");
  });

  test("goes back and forth with the history of the browser", async () => {
    const page = await openPage("/nodes");
    await page.getByRole("link", { name: "Policies", exact: true }).first().click();
    await page.getByRole("link", { name: /etcd-pool/ }).click();
    await page.getByRole("link", { name: "Show on the map" }).click();
    await page.getByRole("heading", { name: "Nodes", exact: true }).waitFor();
    expect(page.url()).toContain("only=");
    await page.goBack();
    await page.getByRole("heading", { name: "etcd-pool" }).waitFor();
    await page.goBack();
    await page.goBack();
    await page.locator("[data-node=cp-0]").waitFor();
    await page.goForward();
    await page.getByRole("heading", { name: "Policies", exact: true }).waitFor();
  });

  test("has a pasted manifest and an edit in its fragment, which no server sees", async () => {
    const page = await openPage("/explain?paste=1");
    const manifest =
      "apiVersion: v1\nkind: Pod\nmetadata: { name: db, namespace: shop, labels: { app: etcd, role: main } }\nspec: { containers: [{ name: a, image: b }] }\n";
    await page.getByLabel("Manifest", { exact: true }).fill(manifest);
    await page.getByLabel("Manifest", { exact: true }).press("Control+Enter");
    await page.getByRole("heading", { name: "shop/db" }).waitFor();
    const link = page.url();
    expect(link).toContain("#m=");
    const other = await openPage(link.slice(link.indexOf("/explain")));
    await other.getByRole("heading", { name: "shop/db" }).waitFor();
    expect(await other.getByLabel("Manifest", { exact: true }).inputValue()).toBe(manifest);
    await other.getByText("pool=etcd").first().waitFor();
  });

  test("that names no view leads back to the nodes", async () => {
    const page = await openPage("/nothing-here");
    await page.getByText("There is no such view").waitFor();
    await page.getByRole("link", { name: "Show the nodes" }).click();
    await page.locator("[data-node=cp-0]").waitFor();
  });
});

describe("the keyboard alone", () => {
  test("finds a pod, opens its node, and reads why it is there", async () => {
    const page = await openPage("/policies");
    await page.getByText("etcd-pool").first().waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("report-0");
    await page.getByRole("option", { name: /team-a\/report-0/ }).waitFor();
    await page.keyboard.press("Enter");
    const link = page.getByRole("link", { name: "Show on cp-0" });
    await link.waitFor();
    await tabTo(page, "Show on cp-0");
    await page.keyboard.press("Enter");
    await page.getByText("The group is in mode Inform").waitFor();
    expect(page.url()).toContain("node=cp-0");
  });

  test("walks the tiles of the map with arrows, and each says what is on its node", async () => {
    const page = await openPage("/nodes?lens=guard");
    await page.locator("[data-node=cp-0]").waitFor();
    expect(await page.locator("[data-node][tabindex='0']").count()).toBe(1);
    await page.locator("[data-node][tabindex='0']").focus();
    const focused = () => page.evaluate("document.activeElement.dataset.node");
    const first = await focused();
    await page.keyboard.press("ArrowRight");
    await expect.poll(focused).not.toBe(first);
    await page.keyboard.press("End");
    await expect.poll(focused).toBe("cp-0");
    await page.keyboard.press("ArrowLeft");
    await expect.poll(focused).not.toBe("cp-0");
    await page.keyboard.press("Home");
    await expect.poll(focused).toBe(first);
    const label = await page.locator("[data-node=cp-0]").textContent();
    expect(label).toContain("3 pods: ");
    expect(label).toContain("1 not authorised, reported");
  });

  test("skips the navigation, and reaches every control of the page", async () => {
    const page = await openPage("/nodes");
    await page.locator("[data-node=cp-0]").waitFor();
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Skip to the content");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    expect(await page.evaluate("document.activeElement.tagName")).toBe("SELECT");
  });

  test("the switch of colours wins over the system, and is remembered", async () => {
    const page = await openPage("/nodes", { colorScheme: "light" });
    const surface = () => page.evaluate("getComputedStyle(document.querySelector('.top')).backgroundColor");
    const light = await surface();
    await page.getByRole("button", { name: /Change to light/ }).click();
    await page.getByRole("button", { name: /Change to dark/ }).press("Enter");
    await expect.poll(surface).not.toBe(light);
    await page.reload();
    await page.locator("[data-node=cp-0]").waitFor();
    expect(await surface()).not.toBe(light);
  });
});

/** Tabs until the element with a name has the focus. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 40; presses++) {
    await page.keyboard.press("Tab");
    if ((await page.evaluate("document.activeElement.textContent")) === name) return;
  }
  throw new Error(`no focus on ${name}`);
}

describe("what if", () => {
  test("shows who is refused when the guard is enabled, and the command that says the same", async () => {
    const page = await openPage("/nodes?lens=guard&node=cp-0&pod=team-a/report-0");
    await page.getByRole("link", { name: "cluster" }).first().click();
    await page.getByRole("link", { name: "Try an edit" }).click();
    await setManifest(page, "Inform", "Enable");
    await page.getByRole("button", { name: "Show what changes" }).click();
    await page.getByText("1 newly refused").waitFor();
    const effects = page.getByRole("region", { name: "Effects" });
    expect(await effects.getByText("team-a/report-0", { exact: true }).count()).toBe(1);
    expect(await effects.getByRole("button", { name: /^cp-0.*1 would be refused/ }).count()).toBe(1);
    expect(await effects.getByRole("region", { name: "Command" }).innerText()).toContain("usher what-if -");
    const link = page.url();
    const other = await openPage(link.slice(link.indexOf("/what-if")));
    await other.getByText("1 newly refused").waitFor();
    await other.getByText("Before", { exact: true }).click();
    await other.getByRole("button", { name: /^cp-0/ }).waitFor();
    expect(await other.getByRole("button", { name: /would be refused/ }).count()).toBe(0);
  });

  test("cordons a node and removes a policy", async () => {
    const page = await openPage("/what-if");
    const field = page.getByRole("combobox", { name: "Remove or cordon" });
    await field.fill("etcd-0");
    await page
      .getByRole("option", { name: /etcd-0/ })
      .first()
      .click();
    await page.getByText("cordon etcd-0").waitFor();
    await field.fill("zone-a");
    await page
      .getByRole("option", { name: /zone-a/ })
      .first()
      .click();
    await page.getByText("remove clusterpodschedulingpolicy/zone-a").waitFor();
    await page.getByRole("button", { name: "Show what changes" }).click();
    await page.getByText(/workloads were|were evaluated/).waitFor();
    expect(await page.getByRole("region", { name: "Command" }).innerText()).toMatch(/--cordon etcd-0|zone-a/);
  });

  test("says what is wrong with a manifest, and where", async () => {
    const page = await openPage("/what-if", { allowed: /status of 4/ });
    await page.getByLabel("Manifests after the edit").fill("apiVersion: v1\nkind: [");
    await page.getByRole("button", { name: "Show what changes" }).click();
    await page.getByRole("alert").waitFor();
    const text = await page.getByRole("alert").innerText();
    expect(text).toContain("a bracket is not closed");
    expect(text).toContain("line 2");
    expect(text).toContain("Show what changes again");
  });
});

describe("states", () => {
  test("a source without policies, nodes and decisions says so in every view", async () => {
    const folder = mkdtempSync(join(tmpdir(), "usher-empty-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "alone" } };
    writeFileSync(join(folder, "namespace.json"), JSON.stringify(namespace));
    const dashboard = await startDashboard(["--source", folder]);
    onTestFinished(dashboard.stop);
    const page = await openPage("/nodes", { origin: dashboard.origin, cookie: "", allowed: /401/ });
    await page.goto(dashboard.url);
    for (const [path, text] of [
      ["/nodes", "No nodes"],
      ["/policies", "No policies"],
      ["/tables/projects", "There is no ProjectRequestLimit named cluster: no user is limited."],
      ["/live", "No decisions yet"],
    ] as const) {
      await page.goto(`${dashboard.origin}${path}`);
      await page.getByText(text).waitFor();
    }
  });

  test("an object that is not there is named, with what to do", async () => {
    const page = await openPage("/explain?kind=Pod&namespace=shop&name=nothing", { allowed: /status of 4/ });
    await page.getByRole("alert").waitFor();
    expect(await page.getByRole("alert").innerText()).toContain("nothing");
  });

  test.each(["", "?token=wrong"])(
    "a page without a session says where to get one: /nodes%s",
    async (query) => {
      const page = await openPage(`/nodes${query}`, { cookie: "", allowed: /401/ });
      await page.getByText("This page is not signed in").waitFor();
      await page.getByText("usher dashboard").first().waitFor();
      expect(page.url()).not.toContain("token");
      expect(await page.locator("[data-node]").count()).toBe(0);
      expect(await violations(page)).toEqual([]);
    },
  );

  test("a connection that is lost is said, and comes back with what changed", async () => {
    const page = await openPage("/nodes", { allowed: /ERR_|Failed to load/ });
    await page.locator("[data-node=cp-0]").waitFor();
    await page.context().setOffline(true);
    await page.route("**/api/**", (route) => route.abort());
    // An open stream of events does not end with the network of a context: a new document has none.
    await page.reload().catch(() => undefined);
    await page.context().setOffline(false);
    await page.reload();
    await page.getByText("The connection to usher is lost").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.unroute("**/api/**");
    await page.locator("[data-node=cp-0]").waitFor();
    await expect.poll(() => page.getByText("The connection to usher is lost").count()).toBe(0);
  });

  test("a process that ends leaves what was read; one that is started again asks for its own URL", async () => {
    const first = await startDashboard(["--source", "examples/cluster"]);
    const page = await openPage("/policies", {
      origin: first.origin,
      cookie: "",
      allowed: /401|ERR_|Failed/,
    });
    await page.goto(first.url);
    await page.locator("[data-node=cp-0]").waitFor();
    expect(page.url()).not.toContain("token");
    await first.stop();
    await page.getByText("The connection to usher is lost").waitFor();
    expect(await page.locator("[data-node=cp-0]").isVisible()).toBe(true);
    const second = await startDashboard(["--source", "examples/cluster"], Number(new URL(first.origin).port));
    try {
      await page.getByText("This page is not signed in").waitFor();
      await page.goto(second.url);
      await page.locator("[data-node=cp-0]").waitFor();
      await expect.poll(() => page.getByText("The connection to usher is lost").count()).toBe(0);
    } finally {
      await second.stop();
    }
  });

  test("a spinner comes only where something takes longer than 200 ms", async () => {
    const page = await openPage("/explain");
    await page.getByText("Choose an object").waitFor();
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    let finish = (): void => undefined;
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    await page.route("**/api/policies", async (route) => {
      await finished;
      await route.continue();
    });
    await page.getByRole("link", { name: "Policies", exact: true }).first().click();
    // The frame that draws the view is a timer too.
    await page.clock.runFor(100);
    await page.getByRole("heading", { name: "Policies", exact: true }).waitFor();
    await page.clock.runFor(90);
    expect(await page.locator(".spinner").count()).toBe(0);
    await page.clock.runFor(200);
    await page.getByText("Reading policies").waitFor();
    expect(await page.locator(".spinner").count()).toBe(1);
    finish();
    await page.clock.resume();
    await page.getByText("etcd-pool").first().waitFor();
    expect(await page.locator(".spinner").count()).toBe(0);
  });
});

describe("the bundle", () => {
  test("has the page, preact and signals, and no code of the process", async () => {
    const folder = mkdtempSync(join(tmpdir(), "usher-bundle-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { inputs } = await bundlePage(folder);
    const others = inputs.filter(
      (file) => !/^(?:src\/dashboard\/page\/|node_modules\/(?:preact|@preact)\/)/.test(file),
    );
    expect(others).toEqual([]);
    expect(inputs.length).toBeGreaterThan(10);
  });

  test.each([
    ["/page.js", 70],
    ["/page.css", 12],
  ])("%s is at most %i KB, compressed", async (path, limit) => {
    const body = Buffer.from(await (await fetch(`${inject("example").origin}${path}`)).arrayBuffer());
    expect(body.length).toBeGreaterThan(1_000);
    expect(gzipSync(body).length).toBeLessThanOrEqual(limit * 1_000);
    expect(brotliCompressSync(body).length).toBeLessThanOrEqual(limit * 1_000);
  });
});
