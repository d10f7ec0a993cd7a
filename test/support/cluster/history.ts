import type { JsonObject } from "../../../src/core/json.ts";

/** One write in the history of a resource. */
interface Write {
  readonly version: number;
  readonly name: string;
  /** `undefined`: deleted. */
  readonly object: JsonObject | undefined;
}

export interface HistoryPage {
  readonly items: readonly JsonObject[];
  readonly version: string;
  readonly next: string | undefined;
}

/** A model of an API server for one resource: all versions of its objects since the last compaction. */
export class History {
  readonly #writes: Write[] = [];
  #version = 1;
  #compacted = 0;

  get version(): number {
    return this.#version;
  }

  put(name: string, value: string): void {
    const version = this.#next();
    const metadata = { name, resourceVersion: String(version) };
    this.#writes.push({ version, name, object: { metadata, value } });
  }

  remove(name: string): void {
    if (this.at(this.#version).has(name))
      this.#writes.push({ version: this.#next(), name, object: undefined });
  }

  /** A write to another resource: the version increases without an event. */
  pass(): void {
    this.#next();
  }

  compact(): void {
    this.#compacted = this.#version;
  }

  /** The objects at a version, by name. */
  at(version: number): Map<string, JsonObject> {
    const objects = new Map<string, JsonObject>();
    for (const { version: written, name, object } of this.#writes) {
      if (written > version) break;
      if (object === undefined) objects.delete(name);
      else objects.set(name, object);
    }
    return new Map([...objects].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** `undefined`: 410, the token expired. */
  page(limit: number, token: string | undefined): HistoryPage | undefined {
    const [at = String(this.#version), after = ""] = token?.split(" ") ?? [];
    if (Number(at) < this.#compacted) return undefined;
    const left = [...this.at(Number(at))].filter(([name]) => name > after);
    const shown = left.slice(0, limit);
    const last = shown.at(-1)?.[0] ?? "";
    return {
      items: shown.map(([, object]) => object),
      version: at,
      next: left.length > shown.length ? `${at} ${last}` : undefined,
    };
  }

  /** The writes after a version; `undefined`: 410. */
  after(version: number): readonly Write[] | undefined {
    if (version < this.#compacted) return undefined;
    return this.#writes.filter((write) => write.version > version);
  }

  #next(): number {
    this.#version += 1;
    return this.#version;
  }
}
