// The map: nodes as tiles in groups, pods as cells in them. Only tiles near the window are in the document, so that 5,000 nodes cost no
// more than 100; each tile is a button with a text that says what its cells show.
import { useSignal } from "@preact/signals";
import { Component, type JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Tone } from "../../core/module/shown.ts";
import type { Category, Cells, MapGroup, MapNode, NodeMap } from "../model.ts";
import { count, counted } from "./parts.tsx";

// ------------------------------------------------------------------------------------------------------------------ layout

interface Scale {
  readonly name: "large" | "medium" | "small";
  readonly cell: number;
  readonly gap: number;
  readonly columns: number;
  readonly padding: number;
  /** Height of the line with the name. */
  readonly nameHeight: number;
  /** Height of the line with the tags. */
  readonly tagsHeight: number;
}

const SCALES: readonly [Scale, Scale, Scale] = [
  { name: "large", cell: 18, gap: 3, columns: 8, padding: 12, nameHeight: 20, tagsHeight: 22 },
  { name: "medium", cell: 11, gap: 2, columns: 10, padding: 8, nameHeight: 18, tagsHeight: 0 },
  { name: "small", cell: 6, gap: 1, columns: 14, padding: 6, nameHeight: 16, tagsHeight: 0 },
];

function scaleOf(nodes: number): Scale {
  return nodes <= 60 ? SCALES[0] : nodes <= 600 ? SCALES[1] : SCALES[2];
}

/** More pods than a kubelet runs are a number. */
const MAX_CELLS = 280;

const GAP = 8;
const HEADING = 28;
const BLOCK_GAP = 24;

export interface PlacedTile {
  readonly node: MapNode;
  readonly x: number;
  readonly y: number;
  readonly height: number;
}

interface PlacedGroup {
  readonly group: MapGroup;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly tiles: readonly PlacedTile[];
}

interface Layout {
  readonly scale: Scale;
  readonly tileWidth: number;
  readonly groups: readonly PlacedGroup[];
  readonly height: number;
}

function sum(cells: Cells): number {
  let total = 0;
  for (let index = 1; index < cells.length; index += 2) total += cells[index] ?? 0;
  return total;
}

/** Groups beside each other while there is room, their tiles in rows of equal height. */
export function layoutOf(map: NodeMap, width: number): Layout {
  const scale = scaleOf(map.nodes.length);
  const inner = scale.columns * (scale.cell + scale.gap) - scale.gap;
  const tileWidth = inner + 2 * scale.padding + 2;
  const perRow = Math.max(1, Math.floor((width + GAP) / (tileWidth + GAP)));
  const byGroup: MapNode[][] = map.groups.map(() => []);
  for (const node of map.nodes) byGroup[node.group]?.push(node);
  const groups: PlacedGroup[] = [];
  let x = 0;
  let y = 0;
  let shelf = 0;
  for (const [index, nodes] of byGroup.entries()) {
    const group = map.groups[index];
    if (group === undefined || nodes.length === 0) continue;
    const columns = Math.min(perRow, nodes.length);
    const heading = Math.min(group.title.length * 7.5 + 128, width, 360);
    const blockWidth = Math.max(columns * (tileWidth + GAP) - GAP, heading);
    if (x > 0 && x + blockWidth > width) {
      x = 0;
      y += shelf + BLOCK_GAP;
      shelf = 0;
    }
    const tiles: PlacedTile[] = [];
    let top = y + HEADING;
    for (let start = 0; start < nodes.length; start += columns) {
      const row = nodes.slice(start, start + columns);
      const height = Math.max(...row.map((node) => tileHeight(node, scale)));
      for (const [column, node] of row.entries())
        tiles.push({ node, x: x + column * (tileWidth + GAP), y: top, height });
      top += height + GAP;
    }
    groups.push({ group, x, y, width: blockWidth, tiles });
    shelf = Math.max(shelf, top - GAP - y);
    x += blockWidth + BLOCK_GAP;
  }
  return { scale, tileWidth, groups, height: y + shelf };
}

function tileHeight(node: MapNode, scale: Scale): number {
  const rows = Math.max(1, Math.ceil(Math.min(sum(node.cells), MAX_CELLS) / scale.columns));
  const tags = node.tags.length > 0 ? scale.tagsHeight : 0;
  return scale.nameHeight + tags + rows * (scale.cell + scale.gap) - scale.gap + 2 * scale.padding + 6;
}

// ------------------------------------------------------------------------------------------------------------------- cells

const SEVERITY: Readonly<Record<Tone, number>> = { bad: 0, warning: 1, plain: 2, good: 3, none: 4 };

/** The place of each category: the worst first, then by name. Their indexes come from the order in which the process met them. */
export function ranksOf(categories: readonly Category[]): readonly number[] {
  const ranks: number[] = [];
  for (const [rank, { index }] of categories
    .map((category, index) => ({ category, index }))
    .sort(
      ({ category: one }, { category: other }) =>
        SEVERITY[one.tone] - SEVERITY[other.tone] || one.title.localeCompare(other.title, "en"),
    )
    .entries())
    ranks[index] = rank;
  return ranks;
}

/** Pairs of category and count by the rank of the category. */
function ordered(cells: Cells, ranks: readonly number[]): Cells {
  if (cells.length <= 2) return cells;
  const pairs: [number, number][] = [];
  for (let index = 0; index < cells.length; index += 2)
    pairs.push([cells[index] ?? 0, cells[index + 1] ?? 0]);
  return pairs.sort(([one], [other]) => (ranks[one] ?? 0) - (ranks[other] ?? 0)).flat();
}

/** A letter for each category without a judgement, from its name where it is free. */
export function lettersOf(categories: readonly Category[]): readonly string[] {
  const used = new Set<string>();
  return categories.map(({ title, tone, colour }) => {
    if (tone !== "plain" || colour === undefined) return "";
    const wanted = [...title.toUpperCase().replaceAll(/[^A-Z]/g, ""), ..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
    const letter = wanted.find((one) => !used.has(one)) ?? "·";
    used.add(letter);
    return letter;
  });
}

const PALETTE = 8;

export function categoryClass({ tone, colour }: Category): string {
  return tone === "plain" && colour !== undefined ? `hue-${colour % PALETTE}` : `tone-${tone}`;
}

/** Shapes for judgements, in a square of 16. */
const SHAPES: Readonly<Record<string, string>> = {
  good: "M4.500 8.300l2.500 2.500 4.500-5.500",
  warning: "M8 4v5M8 11.700v.2",
  bad: "M5 5l6 6M11 5l-6 6",
};

export function Cell({ category, letter }: { readonly category: Category; readonly letter: string }) {
  const shape = SHAPES[category.tone];
  return (
    <svg class={`cell ${categoryClass(category)}`} viewBox="0 0 16 16" aria-hidden="true">
      <rect class="cell-fill" x="0.500" y="0.500" width="15" height="15" rx="3" />
      {shape !== undefined && <path class="cell-shape" d={shape} />}
      {letter !== "" && (
        <text class="cell-letter" x="8" y="11.600">
          {letter}
        </text>
      )}
    </svg>
  );
}

interface DrawnCells {
  readonly fills: string;
  readonly shapes: string;
  readonly letterXs: string;
  readonly letterYs: string;
  readonly letters: string;
}

/** All cells of one category as one path each for the squares and their shapes. */
function draw(start: number, amount: number, scale: Scale, tone: string, letter: string): DrawnCells {
  const { cell, gap, columns } = scale;
  const size = cell - 1;
  const radius = cell >= 16 ? 4 : cell >= 10 ? 2 : 1;
  const side = size - 2 * radius;
  let fills = "";
  let shapes = "";
  const xs: string[] = [];
  const ys: string[] = [];
  const shape = cell >= 10 ? SHAPES[tone] : undefined;
  for (let index = start; index < start + amount && index < MAX_CELLS; index++) {
    const x = (index % columns) * (cell + gap) + 0.5;
    const y = Math.floor(index / columns) * (cell + gap) + 0.5;
    fills += `M${x + radius} ${y}h${side}q${radius} 0 ${radius} ${radius}v${side}q0 ${radius} ${-radius} ${radius}h${-side}q${-radius} 0 ${-radius} ${-radius}v${-side}q0 ${-radius} ${radius} ${-radius}z`;
    if (shape !== undefined) shapes += scaled(shape, cell / 16, x - 0.5, y - 0.5);
    xs.push(String(x - 0.5 + cell / 2));
    ys.push(String(y - 0.5 + cell / 2 + cell * 0.21));
  }
  return { fills, shapes, letterXs: xs.join(" "), letterYs: ys.join(" "), letters: letter.repeat(xs.length) };
}

/** A shape at its place: absolute points move, relative ones only scale. */
function scaled(path: string, factor: number, x: number, y: number): string {
  return path.replaceAll(
    /([MLlv])([-\d.]+)(?: ?([-\d.]+))?/g,
    (_, command: string, first: string, second = "") => {
      const one = Number(first) * factor;
      const two = Number(second) * factor;
      if (command === "M" || command === "L") return `${command}${round(one + x)} ${round(two + y)}`;
      return command === "v" ? `v${round(one)}` : `${command}${round(one)} ${round(two)}`;
    },
  );
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function CellsOf(props: {
  readonly cells: Cells;
  readonly categories: readonly Category[];
  readonly letters: readonly string[];
  readonly scale: Scale;
  readonly only: string;
}) {
  const { cells, categories, letters, scale, only } = props;
  const rows = Math.max(1, Math.ceil(Math.min(sum(cells), MAX_CELLS) / scale.columns));
  const width = scale.columns * (scale.cell + scale.gap) - scale.gap;
  const parts: JSX.Element[] = [];
  let start = 0;
  for (let index = 0; index < cells.length; index += 2) {
    const category = categories[cells[index] ?? 0];
    const amount = cells[index + 1] ?? 0;
    if (category === undefined) continue;
    const letter = letters[cells[index] ?? 0] ?? "";
    const drawn = draw(start, amount, scale, category.tone, letter);
    const faded = only !== "" && only !== category.key ? " faded" : "";
    parts.push(
      <g class={categoryClass(category) + faded}>
        <path class="cell-fill" d={drawn.fills} />
        {drawn.shapes !== "" && <path class="cell-shape" d={drawn.shapes} />}
        {drawn.letters !== "" && scale.cell >= 10 && (
          <text class={`cell-letter ${scale.name}`} x={drawn.letterXs} y={drawn.letterYs}>
            {drawn.letters}
          </text>
        )}
      </g>,
    );
    start += amount;
  }
  return (
    <svg class="cells" width={width} height={rows * (scale.cell + scale.gap) - scale.gap} aria-hidden="true">
      {parts}
    </svg>
  );
}

/** `3 pods: 2 etcd-pool, 1 no policy` */
export function describeCells(cells: Cells, categories: readonly Category[]): string {
  const parts: string[] = [];
  for (let index = 0; index < cells.length; index += 2)
    parts.push(`${count(cells[index + 1] ?? 0)} ${categories[cells[index] ?? 0]?.title ?? ""}`);
  return parts.length === 0 ? "no pods" : `${counted(sum(cells), "pods")}: ${parts.join(", ")}`;
}

/** What a cell of a node is: the n-th pod of a category. */
export interface CellPlace {
  readonly category: number;
  readonly place: number;
}

export function cellAt(cells: Cells, index: number): CellPlace | undefined {
  let before = 0;
  for (let at = 0; at < cells.length; at += 2) {
    const amount = cells[at + 1] ?? 0;
    if (index < before + amount) return { category: cells[at] ?? 0, place: index - before };
    before += amount;
  }
  return undefined;
}

// ------------------------------------------------------------------------------------------------------------------- tiles

interface TileProps {
  readonly node: MapNode;
  readonly scale: Scale;
  readonly categories: readonly Category[];
  readonly letters: readonly string[];
  readonly ranks: readonly number[];
  readonly only: string;
  readonly chosen: boolean;
  readonly tabbable: boolean;
}

/** Drawn again only if its content changed; its position does not count. */
class Tile extends Component<TileProps> {
  override shouldComponentUpdate(next: TileProps): boolean {
    return (Object.keys(next) as (keyof TileProps)[]).some((key) => next[key] !== this.props[key]);
  }

  override render() {
    const { node, scale, categories, letters, ranks, only, chosen, tabbable } = this.props;
    const cells = ordered(node.cells, ranks);
    const unusable = node.tags.includes("not ready") || node.tags.includes("gone");
    return (
      <button
        type="button"
        class={`tile ${scale.name}${chosen ? " chosen" : ""}${unusable ? " unusable" : ""}`}
        data-node={node.name}
        tabIndex={tabbable ? 0 : -1}
        aria-pressed={chosen}
      >
        <span class="tile-name">
          <bdi>{node.name}</bdi>
          {scale.tagsHeight === 0 && node.tags.length > 0 && (
            <>
              <span class="unseen">{`, ${node.tags.join(", ")}`}</span>
              <span class="tile-letters" aria-hidden="true" title={node.tags.join(", ")}>
                {node.tags.map((tag) => tag[0]?.toUpperCase()).join("")}
              </span>
            </>
          )}
        </span>
        {scale.tagsHeight > 0 && node.tags.length > 0 && (
          <span class="tile-tags">
            {node.tags.map((tag) => (
              <>
                <span class="unseen">, </span>
                <span class={`tag tag-${tag.replaceAll(" ", "-")}`}>{tag}</span>
              </>
            ))}
          </span>
        )}
        <span class="unseen">{`; ${describeCells(cells, categories)}`}</span>
        <CellsOf cells={cells} categories={categories} letters={letters} scale={scale} only={only} />
      </button>
    );
  }
}

// --------------------------------------------------------------------------------------------------------------------- map

const OVERSCAN = 300;

export function NodesMap(props: {
  readonly map: NodeMap;
  readonly label: string;
  readonly chosen: string;
  /** Key of the only category that is not faded. */
  readonly only: string;
  readonly onChoose?: (node: MapNode, cell: CellPlace | undefined) => void;
  readonly onHover?: (
    node: MapNode | undefined,
    cell: CellPlace | undefined,
    where: DOMRect | undefined,
  ) => void;
}) {
  const { map, chosen, only } = props;
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  const shown = useSignal<readonly [number, number]>([0, 1_500]);
  const focused = useSignal("");
  const printing = useSignal(matchMedia("print").matches);

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const look = (): void => {
      const top = element.getBoundingClientRect().top;
      const from = Math.floor((-top - OVERSCAN) / 300) * 300;
      const to = Math.ceil((innerHeight - top + OVERSCAN) / 300) * 300;
      if (shown.value[0] !== from || shown.value[1] !== to) shown.value = [from, to];
    };
    const measure = (): void => {
      width.value = Math.floor(element.clientWidth);
      look();
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    addEventListener("scroll", look, { passive: true });
    const print = matchMedia("print");
    const onPrint = (): void => {
      printing.value = print.matches;
    };
    print.addEventListener("change", onPrint);
    return () => {
      observer.disconnect();
      removeEventListener("scroll", look);
      print.removeEventListener("change", onPrint);
    };
  }, []);

  const layout = useMemo(() => layoutOf(map, width.value), [map, width.value]);
  const keys = map.categories.map(({ key }) => key).join("\n");
  const letters = useMemo(() => lettersOf(map.categories), [keys]);
  const ranks = useMemo(() => ranksOf(map.categories), [keys]);
  const known = useRef(map.categories);
  // Counts of categories change with every pod; tiles show only their names and colours.
  if (
    known.current.length !== map.categories.length ||
    known.current.some(({ key }, index) => key !== map.categories[index]?.key)
  )
    known.current = map.categories;
  const [from, to] = printing.value ? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY] : shown.value;
  const all = layout.groups.flatMap(({ tiles }) => tiles);
  const has = (name: string) => name !== "" && all.some(({ node }) => node.name === name);
  const tabbable = has(focused.value) ? focused.value : has(chosen) ? chosen : (all[0]?.node.name ?? "");

  const find = (event: Event): { node: MapNode; button: HTMLElement } | undefined => {
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-node]") : null;
    const tile = button === null ? undefined : all.find(({ node }) => node.name === button.dataset["node"]);
    return button === null || tile === undefined ? undefined : { node: tile.node, button };
  };
  const cellOf = (event: MouseEvent, node: MapNode, button: HTMLElement): CellPlace | undefined => {
    const drawing = button.querySelector(".cells")?.getBoundingClientRect();
    // A key press has no place.
    if (drawing === undefined || (event.detail === 0 && event.type === "click")) return undefined;
    const pitch = layout.scale.cell + layout.scale.gap;
    const column = Math.floor((event.clientX - drawing.left) / pitch);
    const row = Math.floor((event.clientY - drawing.top) / pitch);
    if (column < 0 || column >= layout.scale.columns || row < 0) return undefined;
    return cellAt(ordered(node.cells, ranks), row * layout.scale.columns + column);
  };
  const onClick = (event: MouseEvent): void => {
    const found = find(event);
    if (found === undefined) return;
    focused.value = found.node.name;
    props.onChoose?.(found.node, cellOf(event, found.node, found.button));
  };
  const onMouseMove = (event: MouseEvent): void => {
    const found = find(event);
    if (found === undefined) props.onHover?.(undefined, undefined, undefined);
    else
      props.onHover?.(
        found.node,
        cellOf(event, found.node, found.button),
        found.button.getBoundingClientRect(),
      );
  };
  const focus = (tile: PlacedTile): void => {
    focused.value = tile.node.name;
    const top = box.current?.getBoundingClientRect().top ?? 0;
    const above = top + tile.y - 120;
    const below = top + tile.y + tile.height + 40 - innerHeight;
    if (above < 0) scrollBy(0, above);
    else if (below > 0) scrollBy(0, below);
    requestAnimationFrame(() =>
      box.current
        ?.querySelector<HTMLElement>(`[data-node="${CSS.escape(tile.node.name)}"]`)
        ?.focus({ preventScroll: true }),
    );
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const found = find(event);
    const index = all.findIndex(({ node }) => node.name === found?.node.name);
    const tile = all[index];
    if (tile === undefined) return;
    const next = { ArrowRight: all[index + 1], ArrowLeft: all[index - 1], Home: all[0], End: all.at(-1) }[
      event.key
    ];
    const vertical =
      event.key === "ArrowDown" ? below(all, tile) : event.key === "ArrowUp" ? above(all, tile) : undefined;
    const target = next ?? vertical;
    if (["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key))
      event.preventDefault();
    if (target !== undefined) focus(target);
  };

  return (
    <div
      class="map"
      ref={box}
      role="group"
      aria-label={props.label}
      style={{ height: `${layout.height}px` }}
      onClick={onClick}
      onKeyDown={onKeyDown}
      onMouseMove={onMouseMove}
      onMouseLeave={() => props.onHover?.(undefined, undefined, undefined)}
    >
      {width.value > 0 &&
        layout.groups.map(({ group, x, y, width: blockWidth, tiles }) => {
          const near = tiles.filter(
            (tile) => (tile.y + tile.height >= from && tile.y <= to) || tile.node.name === tabbable,
          );
          if (near.length === 0) return null;
          return (
            <section
              class="map-group"
              key={group.key}
              style={{ left: `${x}px`, top: `${y}px`, width: `${blockWidth}px` }}
            >
              <h2 title={group.title}>
                <bdi>{group.title}</bdi>
                <span class="muted">
                  {counted(group.nodes, "nodes")} · {counted(group.pods, "pods")}
                </span>
              </h2>
              <ul aria-label={group.title}>
                {near.map((tile) => (
                  <li
                    key={tile.node.name}
                    class="tile-place"
                    aria-setsize={tiles.length}
                    aria-posinset={tiles.indexOf(tile) + 1}
                    style={{
                      left: `${tile.x - x}px`,
                      top: `${tile.y - y}px`,
                      width: `${layout.tileWidth}px`,
                      height: `${tile.height}px`,
                    }}
                  >
                    <Tile
                      node={tile.node}
                      scale={layout.scale}
                      categories={known.current}
                      letters={letters}
                      ranks={ranks}
                      only={only}
                      chosen={tile.node.name === chosen}
                      tabbable={tile.node.name === tabbable}
                    />
                  </li>
                ))}
              </ul>
            </section>
          );
        })}
    </div>
  );
}

function below(all: readonly PlacedTile[], from: PlacedTile): PlacedTile | undefined {
  return nearest(
    all.filter(({ y }) => y >= from.y + from.height),
    from,
  );
}

function above(all: readonly PlacedTile[], from: PlacedTile): PlacedTile | undefined {
  return nearest(
    all.filter(({ y, height }) => y + height <= from.y),
    from,
  );
}

function nearest(tiles: readonly PlacedTile[], from: PlacedTile): PlacedTile | undefined {
  const distance = ({ x, y }: PlacedTile) => Math.abs(y - from.y) * 4 + Math.abs(x - from.x);
  let best: PlacedTile | undefined;
  for (const tile of tiles) if (best === undefined || distance(tile) < distance(best)) best = tile;
  return best;
}

/** What colours and shapes mean, with counts. Each is a switch that leaves only its cells in colour. */
export function Legend(props: {
  readonly categories: readonly Category[];
  readonly only: string;
  readonly onOnly: (key: string) => void;
}) {
  const letters = lettersOf(props.categories);
  const ranks = ranksOf(props.categories);
  const used = props.categories
    .map((category, index) => ({ category, letter: letters[index] ?? "", rank: ranks[index] ?? 0 }))
    .filter(({ category }) => category.count > 0 || category.key === props.only)
    .sort((one, other) => one.rank - other.rank);
  if (used.length === 0) return null;
  return (
    <ul class="legend" aria-label="Legend">
      {used.map(({ category, letter }) => (
        <li>
          <button
            type="button"
            class="legend-item"
            aria-pressed={props.only === category.key}
            onClick={() => props.onOnly(props.only === category.key ? "" : category.key)}
          >
            <Cell category={category} letter={letter} />
            <bdi>{category.title}</bdi>
            <span class="number">{count(category.count)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
