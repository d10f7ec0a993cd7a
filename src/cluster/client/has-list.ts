import { at, type Json } from "../../core/json.ts";

/** Whether an answer has this list, be it an empty one. That may be null: Go writes so what nobody has put anything into. */
export function hasList(body: Json | undefined, key: string): boolean {
  const list = at(body, key);
  return Array.isArray(list) || list === null;
}
