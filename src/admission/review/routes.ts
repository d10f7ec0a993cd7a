import { askedName, type Hook, type Phase } from "../../core/module/hook.ts";
import { parseDuration } from "./duration.ts";

/** The API server's default for `timeoutSeconds`, if neither the query nor a hook has one. */
export const DEFAULT_CALL_MS = 10_000;

/** The API server's validation of `timeoutSeconds` allows no longer call. */
export const LONGEST_CALL_MS = 30_000;

/** Cached URLs. An installation has a handful; beyond this the cache is emptied. */
export const CACHED_ROUTES = 256;

const PHASES: readonly Phase[] = ["mutate", "validate"];

/** The parsed form of a URL. */
export interface Route {
  readonly phase: Phase;
  readonly hooks: readonly Hook[];
  /** How long the client waits: the query's timeout, else the hooks'. */
  readonly timeoutMs: number;
  /** The first segment of the path, if it has the form of a token. */
  readonly token: string | undefined;
}

/** The form of a path token: 160 bits in hex. */
export const PATH_TOKEN = /^[0-9a-f]{40}$/;

/** Whether a call with this path segment comes from an API server; a promise if that must be looked up. */
export type AcceptsToken = (token: string | undefined) => boolean | Promise<boolean>;

/** Why a URL has no route. */
interface NotFound {
  readonly notFound: string;
}

/** From URLs to hooks. A URL is parsed again only when the hooks have changed. */
export class Routes {
  readonly #known = new Map<string, { readonly among: readonly Hook[]; readonly route: Route }>();

  find(url: string, hooks: readonly Hook[]): Route | NotFound {
    const known = this.#known.get(url);
    if (known !== undefined && known.among === hooks) return known.route;
    const found = parse(url, hooks);
    if ("notFound" in found) return found;
    if (this.#known.size >= CACHED_ROUTES) this.#known.clear();
    this.#known.set(url, { among: hooks, route: found });
    return found;
  }
}

function parse(url: string, hooks: readonly Hook[]): Route | NotFound {
  const question = url.indexOf("?");
  const path = question < 0 ? url : url.slice(0, question);
  const query = question < 0 ? "" : url.slice(question + 1);
  const [empty, ...segments] = path.split("/");
  const token = PATH_TOKEN.test(segments[0] ?? "") ? segments.shift() : undefined;
  const [first, ...names] = segments;
  const phase = PHASES.find((one) => one === first);
  if (empty !== "" || phase === undefined) {
    return {
      notFound: "not found: use /mutate, /validate, or either followed by hook names",
    };
  }
  const all = hooks.filter((hook) => hook.phase === phase);
  // `/mutate/` is commonly typed for `/mutate`.
  if (names.at(-1) === "") names.pop();
  const chosen = names.length === 0 ? all : [];
  for (const name of new Set(names)) {
    const found = all.filter((one) => one.name === name || askedName(one) === name);
    if (found.length === 0) return { notFound: unknownHook(name, phase, all) };
    chosen.push(...found);
  }
  return { phase, hooks: chosen, timeoutMs: timeoutFor(query, chosen), token };
}

function unknownHook(name: string, phase: Phase, all: readonly Hook[]): string {
  const shown = /^[\w.-]{1,63}$/.test(name) ? ` "${name}"` : "";
  const known =
    all.length === 0 ? "no hooks are served" : `hooks: ${all.map((hook) => hook.name).join(", ")}`;
  return `no hook${shown} for ${phase}; ${known}`;
}

/** The query's `timeout`, else the shortest of the hooks', capped at the API server's limit. */
export function timeoutFor(query: string, hooks: readonly Hook[]): number {
  const asked = timeoutOf(query);
  if (asked !== undefined && asked > 0) return Math.min(asked, LONGEST_CALL_MS);
  let wait = hooks.length === 0 ? DEFAULT_CALL_MS : LONGEST_CALL_MS;
  for (const { timeoutSeconds } of hooks) wait = Math.min(wait, timeoutSeconds * 1_000);
  return wait;
}

/** A timeout that can't be parsed is treated as absent. */
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
