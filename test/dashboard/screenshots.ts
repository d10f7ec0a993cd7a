// `npm run screenshots`: a picture of every view of the example cluster, light and dark, into docs/images. The same bytes each time:
// browser and fonts come from packages, and times and ports are replaced.
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { chromium, type Page } from "playwright-core";
import type { Decisions } from "../../src/dashboard/model.ts";
import { startChromium } from "./chromium.ts";
import { startExample } from "./example.ts";

const folder = join(dirname(dirname(import.meta.dirname)), "docs", "images");

interface Picture {
  readonly name: string;
  readonly path: string;
  /** Is on the page when it is drawn. */
  readonly text: string;
  readonly act?: (page: Page) => Promise<void>;
}

async function enableGuard(page: Page): Promise<void> {
  const editor = page.getByLabel("Manifests after the edit");
  // The policy of the page forbids what waitForFunction does.
  while (!(await editor.inputValue()).includes("Inform")) await page.waitForTimeout(50);
  await editor.fill((await editor.inputValue()).replace("Inform", "Enable"));
  await page.getByRole("button", { name: "Show what changes" }).click();
  await page.getByText("Workloads that differ").waitFor();
}

const PICTURES: readonly Picture[] = [
  {
    name: "nodes",
    path: "/nodes?lens=guard&node=cp-0&pod=team-a/report-0",
    text: "The group is in mode Inform",
  },
  { name: "policies", path: "/policies?policy=ClusterPodSchedulingPolicy/zone-a", text: "Conflicts" },
  { name: "explain", path: "/explain?kind=Pod&namespace=team-a&name=report-0", text: "Where it may run" },
  { name: "what-if", path: "/what-if?edit=NodeSchedulingPolicy//cluster", text: "What if", act: enableGuard },
  { name: "pod-security", path: "/tables/pod-security?row=payments", text: "To fix it" },
  { name: "projects", path: "/tables/projects?row=alice", text: "at the limit" },
  { name: "live", path: "/live", text: "report-1" },
];

/** Times as if they had come in one morning. */
function steady({ decisions }: Decisions): Decisions {
  const at = (index: number) => new Date(Date.UTC(2026, 0, 5, 9, 30, 40 - index * 7)).toISOString();
  return {
    decisions: decisions.map((decision, index) => ({ ...decision, time: at(index) })),
    note: "Decisions of the server at http://127.0.0.1:8080, as they come.",
  };
}

const [server, example] = await Promise.all([startChromium(), startExample()]);
const browser = await chromium.connect(server.wsEndpoint());
try {
  mkdirSync(folder, { recursive: true });
  const [pair = ""] = example.cookie.split(";");
  const [name = "", value = ""] = pair.split("=");
  for (const colorScheme of ["light", "dark"] as const) {
    const context = await browser.newContext({
      viewport: { width: 1_280, height: 800 },
      colorScheme,
      reducedMotion: "reduce",
      timezoneId: "UTC",
      locale: "en",
    });
    await context.addCookies([{ name, value, url: example.origin }]);
    const page = await context.newPage();
    await page.route("**/api/decisions", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ json: steady((await response.json()) as Decisions) });
    });
    for (const picture of PICTURES) {
      await page.goto(`${example.origin}${picture.path}`);
      await page.getByText(picture.text).first().waitFor();
      await picture.act?.(page);
      // Nothing has the focus ring or is under the mouse.
      await page.evaluate("document.activeElement?.blur()");
      await page.mouse.move(0, 0);
      await page.waitForTimeout(200);
      await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
      const file = `dashboard-${picture.name}-${colorScheme}.png`;
      writeFileSync(join(folder, file), await page.screenshot({ animations: "disabled", caret: "hide" }));
      console.log(`docs/images/${file}`);
    }
    await context.close();
  }
} finally {
  await browser.close();
  await example.stop();
  await server.close();
}
