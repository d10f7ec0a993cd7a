import type { Client } from "../../cluster/client/client.ts";
import { isObject, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { RefusedError } from "../install/apply.ts";

/** Labels as a query asks for them. */
export function selectorText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
}

/** The API server's own default for kubectl. */
const PAGE = 500;

/** Every item of a collection, page by page. What is not there, because its kind is gone, has none. */
export async function listAll(client: Client, path: string, selector?: string): Promise<JsonObject[]> {
  const found: JsonObject[] = [];
  for (let next = ""; ; ) {
    const query = new URLSearchParams({
      limit: String(PAGE),
      ...(selector === undefined ? {} : { labelSelector: selector }),
      ...(next === "" ? {} : { continue: next }),
    });
    const answer = await client.request("GET", `${path}?${query}`);
    if (answer.status === 404) return found;
    if (answer.status !== 200) throw new RefusedError(`listing ${path}`, answer);
    found.push(...listAt(answer.body, "items").filter(isObject));
    next = stringAt(answer.body, "metadata", "continue") ?? "";
    if (next === "") return found;
  }
}
