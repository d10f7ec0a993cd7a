/**
 * The first few of a list, shared fairly: the first of each namespace before the second of any, so that one tenant can't push out all
 * others. In the order of the list. Independent of how the list was put together from parts that were cut in the same way.
 */
export function fairShare<Item>(
  items: readonly Item[],
  describe: (item: Item) => string,
  most: number,
): Item[] {
  if (items.length <= most) return [...items];
  const seen = new Map<string, number>();
  const ranked = items.map((item, i) => {
    const namespace = namespaceIn(describe(item));
    const rank = seen.get(namespace) ?? 0;
    seen.set(namespace, rank + 1);
    return { item, i, rank };
  });
  const chosen = ranked.sort((a, b) => a.rank - b.rank || a.i - b.i).slice(0, most);
  return chosen.sort((a, b) => a.i - b.i).map(({ item }) => item);
}

/** `shop` of `Deployment shop/web`; empty for an object of the whole cluster. */
function namespaceIn(object: string): string {
  const name = object.slice(object.lastIndexOf(" ") + 1);
  return name.includes("/") ? name.slice(0, name.indexOf("/")) : "";
}
