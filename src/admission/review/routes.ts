import { askedName, type Hook, type Phase } from "../../core/module/hook.ts";
import { LONGEST_CALL_MS } from "../server/limits.ts";
import { parseDuration } from "./duration.ts";

/** The API server's default for `timeoutSeconds`, where neither the query nor a hook says more. */
export const DEFAULT_CALL_MS = 10_000;

/**
 * Parsed addresses that are remembered. An installation has a handful; a client that invents new ones only makes usher forget and
 * parse again.
 */
export const REMEMBERED_ROUTES = 256;

const PHASES: readonly Phase[] = ["mutate", "validate"];

/** What an address asks for. */
export interface Route {
  readonly phase: Phase;
  readonly hooks: readonly Hook[];
  /** How long the caller waits, by its own word or by the hooks'. */
  readonly waitsMs: number;
  /** The first segment of the path, where it has the form of a token. */
  readonly token: string | undefined;
}

/** As `usher` makes them: 160 bits in hex. */
const TOKEN = /^[0-9a-f]{40}$/;

/** Why there is nothing at an address, for a person. */
export interface Nowhere {
  readonly nowhere: string;
}

/** From addresses to hooks. The hooks are looked up as they are now; an address is parsed anew only when they have changed. */
export class Routes {
  readonly #known = new Map<string, { readonly among: readonly Hook[]; readonly route: Route }>();

  find(url: string, hooks: readonly Hook[]): Route | Nowhere {
    const known = this.#known.get(url);
    if (known !== undefined && known.among === hooks) return known.route;
    const found = parse(url, hooks);
    if ("nowhere" in found) return found;
    if (this.#known.size >= REMEMBERED_ROUTES) this.#known.clear();
    this.#known.set(url, { among: hooks, route: found });
    return found;
  }
}

function parse(url: string, hooks: readonly Hook[]): Route | Nowhere {
  const question = url.indexOf("?");
  const path = question < 0 ? url : url.slice(0, question);
  const query = question < 0 ? "" : url.slice(question + 1);
  const [empty, ...segments] = path.split("/");
  const token = TOKEN.test(segments[0] ?? "") ? segments.shift() : undefined;
  const [first, ...names] = segments;
  const phase = PHASES.find((one) => one === first);
  if (empty !== "" || phase === undefined) {
    return {
      nowhere: "nothing here: POST to /mutate or /validate, or to either with names of hooks behind it",
    };
  }
  const all = hooks.filter((hook) => hook.phase === phase);
  // `/mutate/` is what people type for `/mutate`.
  if (names.at(-1) === "") names.pop();
  const chosen = names.length === 0 ? all : [];
  for (const name of new Set(names)) {
    const found = all.filter((one) => one.name === name || askedName(one) === name);
    if (found.length === 0) return { nowhere: unknownHook(name, phase, all) };
    chosen.push(...found);
  }
  return { phase, hooks: chosen, waitsMs: waitOf(query, chosen), token };
}

function unknownHook(name: string, phase: Phase, all: readonly Hook[]): string {
  const shown = /^[\w.-]{1,63}$/.test(name) ? ` "${name}"` : "";
  const known = all.length === 0 ? "there are none" : `there are: ${all.map((hook) => hook.name).join(", ")}`;
  return `no hook${shown} to ${phase} with; ${known}`;
}

/** The query's `timeout`, else the shortest of the hooks', never beyond what the API server allows. */
function waitOf(query: string, hooks: readonly Hook[]): number {
  const asked = timeoutOf(query);
  if (asked !== undefined && asked > 0) return Math.min(asked, LONGEST_CALL_MS);
  let wait = hooks.length === 0 ? DEFAULT_CALL_MS : LONGEST_CALL_MS;
  for (const { timeoutSeconds } of hooks) wait = Math.min(wait, timeoutSeconds * 1_000);
  return wait;
}

/** A timeout that can't be read is treated as absent: refusing a request for it would help nobody. */
function timeoutOf(query: string): number | undefined {
  for (const part of query.split("&")) {
    if (!part.startsWith("timeout=")) continue;
    try {
      return parseDuration(decodeURIComponent(part.slice("timeout=".length)));
    } catch {
      return undefined;
    }
  }
  return undefined;
}
