// Nodes as columns: nodes that are alike for a filter have one class, so that the filter judges them once.
import { at, type JsonObject } from "../json.ts";
import { labelsOf, nameOf } from "../kubernetes/object.ts";
import { labelValue } from "../kubernetes/selectors/label-selector.ts";
import { type Taint, taintsOf } from "../kubernetes/taints.ts";
import { type Amounts, amountsOf } from "./pod-requests.ts";

/** The nodes by one of their properties: each node's class, and what the nodes of a class have in common. */
export interface NodeColumn<T> {
  /** By node. */
  readonly classes: Int32Array;
  /** By class. */
  readonly values: readonly T[];
}

export class NodeTable {
  readonly objects: readonly JsonObject[];
  readonly names: readonly string[];
  readonly #indexes: ReadonlyMap<string, number>;
  readonly #labels = new Map<string, NodeColumn<string | undefined>>();
  readonly #resources = new Map<string, Float64Array>();
  #taints: NodeColumn<readonly Taint[]> | undefined;
  #allocatable: readonly Amounts[] | undefined;

  constructor(nodes: readonly JsonObject[]) {
    this.objects = nodes;
    this.names = nodes.map(nameOf);
    this.#indexes = new Map(this.names.map((name, i) => [name, i]));
  }

  get count(): number {
    return this.objects.length;
  }

  indexOf(name: string): number | undefined {
    return this.#indexes.get(name);
  }

  /** The values of a label. */
  label(key: string): NodeColumn<string | undefined> {
    let column = this.#labels.get(key);
    if (column === undefined) {
      column = columnOf(this.objects, (node) => labelValue(labelsOf(node), key), String);
      this.#labels.set(key, column);
    }
    return column;
  }

  /** By node, how much of a resource the kubelet gives to pods; 0 where it has none, NaN where the amount is not known. */
  allocatable(resource: string): Float64Array {
    let column = this.#resources.get(resource);
    if (column === undefined) {
      this.#allocatable ??= this.objects.map((node) => amountsOf(at(node, "status", "allocatable")));
      column = Float64Array.from(this.#allocatable, (amounts) => amounts.get(resource) ?? 0);
      this.#resources.set(resource, column);
    }
    return column;
  }

  get taints(): NodeColumn<readonly Taint[]> {
    this.#taints ??= columnOf(this.objects, taintsOf, (taints) => JSON.stringify(taints));
    return this.#taints;
  }
}

/** @param keyOf The same text for values that are alike. */
export function columnOf<T>(
  nodes: readonly JsonObject[],
  read: (node: JsonObject) => T,
  keyOf: (value: T) => string,
): NodeColumn<T> {
  const classes = new Int32Array(nodes.length);
  const values: T[] = [];
  const known = new Map<string | undefined, number>();
  for (const [i, node] of nodes.entries()) {
    const value = read(node);
    const key = value === undefined ? undefined : keyOf(value);
    let found = known.get(key);
    if (found === undefined) {
      found = values.push(value) - 1;
      known.set(key, found);
    }
    classes[i] = found;
  }
  return { classes, values };
}
