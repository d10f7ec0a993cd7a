import { isObject, type JsonObject } from "../../core/json.ts";
import { factsOf, type Log } from "../../core/log.ts";
import { checkObject } from "../../core/policy/check.ts";
import { CONFIGURATION_NAME, configurationPath, configurationsIn } from "../../core/policy/configuration.ts";
import { type Kind, kindResource } from "../../core/policy/kind.ts";
import { describeProblem } from "../../core/policy/problem.ts";
import { Store } from "../../core/view/store.ts";
import type { Change } from "../../core/view/view.ts";
import { readText, Unreadable } from "../../files/reader/bytes.ts";
import { located, readManifests } from "../../files/reader/read-documents.ts";
import { FILE_POLL_MS } from "../../files/source/watch.ts";
import { CallError } from "../exit.ts";
import { describeProblems } from "../input/problems.ts";

export interface ConfigurationFileOptions {
  readonly file: string;
  readonly kind: Kind;
  /** Receives the configuration, at first and whenever it changes. */
  readonly use: (change: Change) => void;
  readonly log: Log;
  readonly pollMs?: number;
}

interface Read {
  readonly text: string;
  readonly object: JsonObject;
  /** A probable mistake. */
  readonly warnings: readonly string[];
}

/**
 * Reads the one configuration of a file, and follows it. An invalid file is an error at first, and later keeps the last
 * configuration.
 */
export async function followConfiguration(
  options: ConfigurationFileOptions,
): Promise<{ readonly stop: () => void }> {
  const { kind, log, file, pollMs = FILE_POLL_MS } = options;
  let reported = "";
  const use = ({ object, warnings }: Read): void => {
    for (const warning of warnings) log.warn({ file, warning }, "the configuration is used, with a warning");
    options.use({ resource: kindResource(kind), namespace: "", name: CONFIGURATION_NAME, object });
  };
  let current = await read(options);
  use(current);
  const look = async () => {
    try {
      const next = await read(options);
      reported = "";
      if (next.text === current.text) return;
      current = next;
      use(current);
      log.info({ file }, "the configuration has changed");
    } catch (error) {
      const { error: why } = factsOf(error);
      if (why !== reported) log.error({ error: why }, "the last valid configuration stays in use");
      reported = why;
    }
  };
  // One read at a time: an older read must not end after a newer one.
  let isLooking = false;
  const timer = setInterval(async () => {
    if (isLooking) return;
    isLooking = true;
    await look();
    isLooking = false;
  }, pollMs);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}

async function read({ file, kind }: ConfigurationFileOptions): Promise<Read> {
  const { text, problems } = await readText(file).catch((error: unknown) => {
    if (error instanceof Unreadable) throw new CallError(`--configuration ${file} ${error.message}`);
    throw error;
  });
  const input = { name: file, text };
  const { manifests, problems: unparsed } = readManifests(text);
  const broken = [...problems.map((one) => located(text, one)), ...unparsed];
  if (broken.length > 0)
    throw new CallError(describeProblems(broken.map((one) => ({ input, located: one }))).join("\n"));
  const found = manifests.flatMap(({ value, document, path }) => {
    const configurations = isObject(value) ? configurationsIn(value, [kind]) : undefined;
    const place = (inner: readonly (string | number)[]) => ({ input, document, path: [...path, ...inner] });
    return [{ found: configurations?.found ?? [], problems: configurations?.problems ?? [], place }];
  });
  const wrong = found.flatMap((one) =>
    one.problems
      .filter(({ severity }) => severity === "error")
      .map((problem) => ({ place: one.place([]), problem })),
  );
  if (wrong.length > 0) throw new CallError(describeProblems(wrong).join("\n"));
  const objects = found.flatMap(({ found: all, place }) => all.map((one) => ({ ...one, place })));
  const [first] = objects;
  if (first === undefined || objects.length > 1)
    throw new CallError(`${file}: must hold one ${kind.kind}, and holds ${objects.length}`);
  const checked = checkObject(kind, first.object, new Store()).map((problem) => ({
    place: first.place(first.path),
    problem: { ...problem, path: configurationPath(problem.path) },
  }));
  const errors = checked.filter(({ problem }) => problem.severity === "error");
  if (errors.length > 0) throw new CallError(describeProblems(errors).join("\n"));
  return { text, object: first.object, warnings: checked.map(({ problem }) => describeProblem(problem)) };
}
