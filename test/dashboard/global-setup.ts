// One browser for all tests of the page, and the example cluster as `npm start` serves it.
import type { TestProject } from "vitest/node";
import { startChromium } from "./chromium.ts";
import { startExample } from "./example.ts";

declare module "vitest" {
  interface ProvidedContext {
    readonly browser: string;
    readonly example: { readonly origin: string; readonly cookie: string; readonly webhook: string };
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const [browser, example] = await Promise.all([startChromium(), startExample()]);
  project.provide("browser", browser.wsEndpoint());
  project.provide("example", { origin: example.origin, cookie: example.cookie, webhook: example.webhook });
  return async () => {
    await example.stop();
    await browser.close();
  };
}
