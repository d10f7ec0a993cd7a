import { type FSWatcher, watch } from "node:fs";
import type { Directory } from "./tree.ts";

/** Editors write in several steps; changes within this time are one change. */
export const STABLE_MS = 100;

/** How often to scan without a notification: they get lost on network disks and when there are too many at once. */
export const FILE_POLL_MS = 2_000;

/** Scanning may take at most one part in this many of the time: a directory of 10,000 files is scanned less often. */
const POLL_SHARE = 50;

/** Calls `look` when something in the directories may have changed, one call at a time. */
export class Watch {
  readonly #look: () => Promise<readonly Directory[]>;
  readonly #watchers = new Map<string, FSWatcher>();
  #timer: NodeJS.Timeout | undefined;
  #nudged = false;
  #looking = false;
  #again = false;
  #stopped = false;

  /** `look` returns the directories to watch from then on. */
  constructor(look: () => Promise<readonly Directory[]>) {
    this.#look = look;
  }

  start(directories: readonly Directory[]): void {
    this.#follow(directories);
    this.#schedule(FILE_POLL_MS);
  }

  /** Something may have changed: scan soon, once the files are stable. */
  nudge(): void {
    if (this.#looking) this.#again = true;
    if (this.#looking || this.#nudged) return;
    this.#nudged = true;
    this.#schedule(STABLE_MS);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #schedule(delay: number): void {
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    // The timer never keeps the process alive: the server does.
    this.#timer = setTimeout(() => void this.#run(), delay).unref();
  }

  async #run(): Promise<void> {
    this.#looking = true;
    this.#nudged = false;
    this.#again = false;
    const begin = performance.now();
    try {
      this.#follow(await this.#look());
    } finally {
      this.#looking = false;
      const spent = performance.now() - begin;
      if (this.#again) this.nudge();
      else this.#schedule(Math.max(FILE_POLL_MS, spent * POLL_SHARE));
    }
  }

  /** One watcher per directory: it also reports files that are created, deleted or renamed. */
  #follow(directories: readonly Directory[]): void {
    if (this.#stopped) return;
    // By identity as well: a directory that was deleted and recreated under its name needs a new watcher.
    const wanted = new Map(directories.map((one) => [`${one.identity} ${one.path}`, one.path]));
    for (const [key, watcher] of this.#watchers) {
      if (wanted.has(key)) continue;
      watcher.close();
      this.#watchers.delete(key);
    }
    for (const [key, path] of wanted) {
      if (this.#watchers.has(key)) continue;
      try {
        const watcher = watch(path, { persistent: false }, () => this.nudge());
        watcher.on("error", () => this.#forget(key, watcher));
        this.#watchers.set(key, watcher);
      } catch {
        // The watch limit is reached, or the directory is gone again: periodic scans suffice.
      }
    }
  }

  #forget(key: string, watcher: FSWatcher): void {
    watcher.close();
    if (this.#watchers.get(key) === watcher) this.#watchers.delete(key);
    this.nudge();
  }
}
