import type { Assembly } from "../../core/module/assembly.ts";
import { byText } from "../../core/order.ts";
import type { TimeSlices } from "../../core/time-slices.ts";
import { NOT_FOUND, Unreadable } from "../reader/bytes.ts";
import { checkCandidate, readCandidate } from "./candidate.ts";
import type { Catalog } from "./catalog.ts";
import { duplicateProblems } from "./duplicate-objects.ts";
import { fileSlices } from "./file-slices.ts";
import { type Attempt, decide, type FileState, fileProblem, fileRemoved, type Step } from "./file-state.ts";
import { describeFileProblem, type FileProblem, type FileReport, problemReport } from "./report.ts";
import type { Resources } from "./resources.ts";
import {
  type Directory,
  type FileStat,
  recentlyModified,
  sameStat,
  scanAll,
  scanDirectory,
  type Tree,
} from "./tree.ts";
import { STABLE_MS } from "./watch.ts";

/** Entries applied to the assembly at once while the source is opened, before requests are served. */
const OPENING_STEP = 500;

/** A file that keeps changing is read after this many scans, two seconds or more. */
const MAX_POSTPONED = 20;

interface FileSetOptions {
  readonly directory: string | readonly string[];
  readonly assembly: Assembly;
  readonly catalog: Catalog;
  readonly resources: Resources;
  readonly report: (report: FileReport) => void;
  readonly progress?: (done: number, total: number, file: string) => void;
}

/** The files of a source: the content of each, the served version, and the transition between them. */
export class FileSet {
  readonly #options: FileSetOptions;
  readonly #roots: readonly string[];
  readonly #states = new Map<string, FileState>();
  #directories: readonly Directory[] = [];
  #duplicates: readonly FileProblem[] = [];
  #hidden: readonly FileProblem[] = [];
  /** How often each changing file was skipped. */
  readonly #postponed = new Map<string, number>();
  #work: Promise<void> = Promise.resolve();
  #unstable = false;

  constructor(options: FileSetOptions) {
    this.#options = options;
    this.#roots = [...new Set([options.directory].flat())];
  }

  get problems(): readonly FileProblem[] {
    const found: FileProblem[] = [...this.#hidden];
    for (const { problems } of this.#inOrder()) found.push(...problems);
    return [...found, ...this.#duplicates];
  }

  get directories(): readonly Directory[] {
    return this.#directories;
  }

  get count(): number {
    return this.#states.size;
  }

  /** True if a file was still being written at the last scan: scan again soon. */
  get unstable(): boolean {
    return this.#unstable;
  }

  async open(): Promise<void> {
    const tree = await this.#scan();
    const root = tree.hidden.find(({ name }) => name === "" || this.#roots.includes(name));
    if (root !== undefined) {
      throw new Error(`${this.#shown(root)} ${root.reason}; pass a directory of YAML files or a single file`);
    }
    await this.#take(tree, tree.files, true);
  }

  /** `stable` skips files that changed a moment ago, as they may still be written. */
  refresh(when: "now" | "stable"): Promise<void> {
    const next = this.#work.then(() => this.#refresh(when));
    this.#work = next.catch(() => {});
    return next;
  }

  idle(): Promise<void> {
    return this.#work;
  }

  async #refresh(when: "now" | "stable"): Promise<void> {
    const tree = await this.#scan();
    const now = Date.now();
    this.#unstable = false;
    const changed: FileStat[] = [];
    for (const stat of tree.files) {
      const state = this.#states.get(stat.name);
      if (state !== undefined && !state.fresh && sameStat(state.stat, stat)) continue;
      if (when === "stable" && recentlyModified(stat, now, STABLE_MS)) {
        this.#unstable = true;
        const times = this.#postponed.get(stat.name) ?? 0;
        this.#postponed.set(stat.name, times + 1);
        if (times < MAX_POSTPONED) continue;
      }
      this.#postponed.delete(stat.name);
      changed.push(stat);
    }
    await this.#take(tree, changed, false);
  }

  /** Processes changes: reads, checks, decides, and puts everything in force at once. */
  async #take(tree: Tree, changed: readonly FileStat[], opening: boolean): Promise<void> {
    this.#directories = tree.directories;
    this.#reportUnreadable(tree);
    const gone = this.#goneFrom(tree);
    if (changed.length === 0 && gone.length === 0) return;
    const files = changed.toSorted(byText(({ name }) => name));
    const slices = fileSlices();
    const attempts = await this.#readAll(files, opening, slices);
    await this.#checkAll(attempts, slices);
    const steps: Step[] = [];
    for (const attempt of attempts) {
      steps.push(await decide(attempt, this.#shown(attempt.stat), opening, slices));
      await slices.next();
    }
    for (const state of gone) steps.push(fileRemoved(state));
    await this.#enforce(steps, opening, slices);
    for (const { reports } of steps.sort(byText(({ name }) => name))) {
      for (const report of reports) this.#options.report(report);
    }
    await this.#reportDuplicates();
  }

  /** Reads files in their order. */
  async #readAll(files: readonly FileStat[], opening: boolean, slices: TimeSlices): Promise<Attempt[]> {
    const { resources, progress } = this.#options;
    const attempts: Attempt[] = [];
    let done = 0;
    let total = files.length;
    for (const stat of files) {
      const before = done;
      // A file counts as one document until their number is known.
      let expected = 1;
      const read = await readCandidate(stat, resources, slices, (count, of) => {
        done = before + count;
        total += of - expected;
        expected = of;
        if (opening) progress?.(done, total, stat.name);
      }).catch((error: unknown) => {
        if (error instanceof Unreadable) return { unreadable: error.message };
        throw error;
      });
      // Gone since the scan: the next scan will report it.
      if ("unreadable" in read && read.unreadable === NOT_FOUND) continue;
      attempts.push({ stat, before: this.#states.get(stat.name), outcome: read });
    }
    return attempts;
  }

  /** Checks the policies of all files together, in a view that includes the other new objects of these files. */
  async #checkAll(attempts: readonly Attempt[], slices: TimeSlices): Promise<void> {
    const { assembly } = this.#options;
    const others = attempts
      .flatMap(({ outcome }) => ("entries" in outcome ? outcome.entries : []))
      .filter(({ resource }) => resource.policy === undefined && assembly.wants(resource.name))
      .map(({ resource, namespace, name, object }) => ({ resource: resource.name, namespace, name, object }));
    const view = others.length === 0 ? assembly.view : assembly.view.with(others);
    for (const { outcome } of attempts)
      if ("entries" in outcome) await checkCandidate(outcome, view, assembly, slices);
  }

  /**
   * There are no requests during opening, so it proceeds in steps; later everything changes at once, so that no request
   * sees a partial change.
   */
  async #enforce(steps: readonly Step[], opening: boolean, slices: TimeSlices): Promise<void> {
    const { catalog, assembly } = this.#options;
    for (const { name, state } of steps) {
      if (state === undefined) this.#states.delete(name);
      else this.#states.set(name, state);
    }
    const added = steps.flatMap((step) => step.added);
    if (!opening) {
      const removed = steps.flatMap((step) => step.removed);
      assembly.apply(catalog.update(removed, added));
      return;
    }
    for (let i = 0; i < added.length; i += OPENING_STEP) {
      assembly.apply(catalog.update([], added.slice(i, i + OPENING_STEP)));
      await slices.next();
    }
  }

  #goneFrom(tree: Tree): FileState[] {
    // Usually nothing is gone, and counting is cheaper than building a set of ten thousand names.
    const known = tree.files.reduce((sum, { name }) => sum + (this.#states.has(name) ? 1 : 0), 0);
    if (known === this.#states.size) return [];
    const seen = new Set(tree.files.map(({ name }) => name));
    const out = (name: string): boolean =>
      tree.hidden.some(
        (one) => one.name === "" || one.name === name || (one.directory && name.startsWith(`${one.name}/`)),
      );
    return [...this.#states.values()].filter(({ name }) => !seen.has(name) && !out(name));
  }

  /** A path that can't be scanned is reported once, until it changes. */
  #reportUnreadable(tree: Tree): void {
    const before = new Set(this.#hidden.map(describeFileProblem));
    this.#hidden = tree.hidden.map(({ name, reason }) => {
      const served =
        name === "" || [...this.#states.keys()].some((one) => one === name || one.startsWith(`${name}/`));
      const ending = served ? "; still serving what was read before" : "; skipped";
      return fileProblem(this.#shown({ name }), `${reason}${this.#states.size === 0 ? "" : ending}`);
    });
    for (const [i, one] of this.#hidden.entries()) {
      if (before.has(describeFileProblem(one))) continue;
      this.#options.report(problemReport(tree.hidden[i]?.name ?? "", [one], ""));
    }
  }

  async #reportDuplicates(): Promise<void> {
    const before = new Set(this.#duplicates.map(describeFileProblem));
    const found = await duplicateProblems(this.#options.catalog.duplicates(), (name) => {
      const { path = "" } = this.#states.get(name) ?? {};
      return { path, shown: this.#shown({ name, path }) };
    });
    this.#duplicates = found.map(({ problem }) => problem);
    for (const { file, problem } of found) {
      if (!before.has(describeFileProblem(problem))) this.#options.report(problemReport(file, [problem], ""));
    }
  }

  #inOrder(): FileState[] {
    return [...this.#states.values()].sort(byText(({ name }) => name));
  }

  #scan(): Promise<Tree> {
    const [first = "", ...more] = this.#roots;
    return more.length === 0 ? scanDirectory(first) : scanAll(this.#roots);
  }

  /** A file as the user would type it. If the source is a single file, its given name. */
  #shown({ name, path }: { readonly name: string; readonly path?: string }): string {
    const [directory = "", ...more] = this.#roots;
    if (more.length > 0) return name;
    if (name === "" || path === directory) return directory;
    return directory.endsWith("/") ? `${directory}${name}` : `${directory}/${name}`;
  }
}
