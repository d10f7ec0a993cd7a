// Pages of a test, each with a session of its own. A script that the page may not run, an error of its script, or something that it
// loads from elsewhere fails the test.
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { expect, inject, onTestFinished } from "vitest";

let shared: Promise<Browser> | undefined;

/** One connection for all files. */
function browser(): Promise<Browser> {
  shared ??= chromium.connect(inject("browser"));
  return shared;
}

const SIZE = { width: 1_440, height: 900 };

type PageOptions = BrowserContextOptions & {
  /** As the header Set-Cookie has it. */
  readonly cookie?: string;
  /** Errors that the test expects, such as calls that fail. */
  readonly allowed?: RegExp;
};

export type OpenOptions = PageOptions & { readonly origin?: string };

/** A page of the example cluster, signed in, at a path. */
export async function openPage(path: string, options: OpenOptions = {}): Promise<Page> {
  const example = inject("example");
  const { origin = example.origin, cookie = example.cookie, ...rest } = options;
  const page = await pageIn(await browser(), origin, { cookie, ...rest });
  await page.goto(`${origin}${path}`);
  return page;
}

/** A page that may load what is of its origin only. */
export async function pageIn(browser: Browser, origin: string, options: PageOptions = {}): Promise<Page> {
  const { cookie = "", allowed, ...rest } = options;
  const context = await browser.newContext({ viewport: SIZE, reducedMotion: "reduce", ...rest });
  if (cookie !== "") {
    const [pair = ""] = cookie.split(";");
    const [name = "", value = ""] = pair.split("=");
    await context.addCookies([{ name, value, url: origin, httpOnly: true, sameSite: "Strict" }]);
  }
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const errors: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(String(error.stack)));
  page.on("dialog", (dialog) => {
    errors.push(`a script opened a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(`${origin}/`) && !/^(?:data|about):/.test(request.url()))
      errors.push(`loads ${request.url()}`);
  });
  onTestFinished(async () => {
    await context.close();
    expect(errors.filter((error) => allowed === undefined || !allowed.test(error))).toEqual([]);
  });
  return page;
}
