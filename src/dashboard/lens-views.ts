import type { JsonObject } from "../core/json.ts";
import type { Assembly } from "../core/module/assembly.ts";
import type { Lens, LensAnswer, PreparedLens } from "../core/module/dashboard.ts";
import type { Template } from "./kept-objects.ts";
import type { Cells, Category as ShownCategory } from "./model.ts";

/** The categories of one lens. Each keeps its index for the life of the process, so that the page may refer to it. */
export class Categories {
  readonly #indexes = new Map<string, number>();
  readonly #known: { key: string; title: string; tone: LensAnswer["tone"]; colour?: number }[] = [];
  #colours = 0;

  indexOf({ key, title, tone }: Pick<LensAnswer, "key" | "title" | "tone">): number {
    const known = this.#indexes.get(key);
    if (known === undefined) {
      const index = this.#known.length;
      this.#indexes.set(key, index);
      this.#known.push({ key, title, tone, ...(tone === "plain" ? { colour: this.#colours++ } : {}) });
      return index;
    }
    const category = this.#known[known];
    if (category !== undefined && category.title !== title) category.title = title;
    return known;
  }

  /** With the number of cells of each. */
  shown(counts: ReadonlyMap<number, number>): ShownCategory[] {
    return this.#known.map((category, index) => ({ ...category, count: counts.get(index) ?? 0 }));
  }
}

/** The answers of one lens for the current policies: one for each template and each relevant state of a node. */
export class LensView {
  readonly #prepared: PreparedLens;
  readonly #templateOf: (pod: JsonObject) => Template | undefined;
  readonly #answers = new Map<Template, Map<string, LensAnswer>>();
  readonly #nodeKeys = new Map<JsonObject, string>();

  constructor(
    lens: Lens,
    assembly: Assembly,
    now: number,
    templateOf: (pod: JsonObject) => Template | undefined,
  ) {
    this.#prepared = lens.prepare(assembly, now);
    this.#templateOf = templateOf;
  }

  of(pod: JsonObject, node: JsonObject | undefined): LensAnswer {
    const template = this.#templateOf(pod);
    if (template === undefined) return this.#prepared.of(pod, node);
    const key = this.#nodeKey(node);
    const answers = this.#answers.get(template) ?? new Map<string, LensAnswer>();
    if (answers.size === 0) this.#answers.set(template, answers);
    const known = answers.get(key);
    if (known !== undefined) return known;
    const answer = this.#prepared.of(pod, node);
    answers.set(key, answer);
    return answer;
  }

  #nodeKey(node: JsonObject | undefined): string {
    if (node === undefined) return "";
    const { nodeKey } = this.#prepared;
    if (nodeKey === undefined) return " ";
    const known = this.#nodeKeys.get(node);
    if (known !== undefined) return known;
    const key = ` ${nodeKey(node)}`;
    this.#nodeKeys.set(node, key);
    return key;
  }
}

/** Counts of categories as pairs, in the order of categories. */
export function cellsOf(answers: ReadonlyMap<LensAnswer, number>, categories: Categories): Cells {
  const counts = new Map<number, number>();
  for (const [answer, count] of answers) {
    const index = categories.indexOf(answer);
    counts.set(index, (counts.get(index) ?? 0) + count);
  }
  return [...counts].sort(([a], [b]) => a - b).flat();
}

/** Adds pairs to totals. */
export function addCells(totals: Map<number, number>, cells: Cells): void {
  for (let i = 0; i + 1 < cells.length; i += 2) {
    const [index = 0, count = 0] = [cells[i], cells[i + 1]];
    totals.set(index, (totals.get(index) ?? 0) + count);
  }
}
