// The state of the page: its address, the connection to the process, the data that it has read, light or dark.
import { type Signal, signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type {
  ApiError,
  LiveDecision,
  LocatedProblem,
  NodeMap,
  ObjectRef,
  ServerEvents,
  SourceState,
} from "../model.ts";

// ----------------------------------------------------------------------------------------------------------------- address

/** The address is the state: every view can be linked to. */
export const address = signal(new URL(location.href));

export type Parameters = Readonly<Record<string, string | undefined>>;

/** An address of the page; parameters without a value are left out. */
export function href(path: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) query.set(name, value);
  // Slashes and colons are legal in a query, and easier to read.
  const text = query.toString().replaceAll("%2F", "/").replaceAll("%3A", ":");
  return text === "" ? path : `${path}?${text}`;
}

export function go(to: string, replace = false): void {
  const target = new URL(to, location.href);
  if (target.href === location.href) return;
  if (replace) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  address.value = target;
}

/** Changes parameters of the present address. */
export function change(parameters: Parameters, replace = false): void {
  const { pathname, searchParams } = address.value;
  go(href(pathname, { ...Object.fromEntries(searchParams), ...parameters }), replace);
}

export function parameter(name: string): string {
  return address.value.searchParams.get(name) ?? "";
}

/** Explain, for an object. */
export function explainHref(object: ObjectRef): string {
  return href("/explain", { kind: object.kind, namespace: object.namespace, name: object.name });
}

addEventListener("popstate", () => {
  address.value = new URL(location.href);
});

// Links within the page load nothing again.
addEventListener("click", (event) => {
  if (
    event.defaultPrevented ||
    event.button !== 0 ||
    event.ctrlKey ||
    event.metaKey ||
    event.shiftKey ||
    event.altKey
  )
    return;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (link === null || link.origin !== location.origin || link.target !== "" || link.hash !== "") return;
  event.preventDefault();
  go(link.href);
});

/** A text in the fragment of an address, which no server sees: a pasted manifest is part of a link. */
export async function packed(text: string): Promise<string> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

export async function unpacked(text: string): Promise<string> {
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    return await new Response(
      new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")),
    ).text();
  } catch {
    return "";
  }
}

// ------------------------------------------------------------------------------------------------------------------- theme

export type Theme = "auto" | "light" | "dark";

export const theme = signal<Theme>(readTheme());

function readTheme(): Theme {
  const stored = localStorage.getItem("theme");
  return stored === "light" || stored === "dark" ? stored : "auto";
}

export function setTheme(value: Theme): void {
  theme.value = value;
  localStorage.setItem("theme", value);
  document.documentElement.dataset["theme"] = value;
}

// --------------------------------------------------------------------------------------------------------------------- api

export class ApiFailure extends Error {
  readonly status: number;
  readonly hint: string;
  readonly problems: readonly LocatedProblem[];

  constructor(status: number, error: ApiError["error"]) {
    super(error.message);
    this.status = status;
    this.hint = error.hint ?? "";
    this.problems = error.problems ?? [];
  }
}

/** The session of this page has ended: the process was started again, or the token was wrong. */
export const signedOut = signal(false);

export async function api<T>(path: string, body?: unknown, abort?: AbortSignal): Promise<T> {
  const call: RequestInit =
    body === undefined
      ? {}
      : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  let response: Response;
  try {
    response = await fetch(path, abort === undefined ? call : { ...call, signal: abort });
  } catch (error) {
    if (abort?.aborted) throw error;
    throw new ApiFailure(0, {
      message: "The process behind this page does not respond.",
      hint: "Look at the terminal where usher dashboard runs. The page connects again by itself.",
    });
  }
  if (response.status === 401) signedOut.value = true;
  const text = await response.text();
  if (response.ok) return JSON.parse(text) as T;
  throw new ApiFailure(response.status, parseError(text, response.status));
}

function parseError(text: string, status: number): ApiError["error"] {
  try {
    return (JSON.parse(text) as ApiError).error;
  } catch {
    return { message: text.slice(0, 500) || `The process responded with status ${status}.` };
  }
}

// -------------------------------------------------------------------------------------------------------------- connection

export type ConnectionState = "connecting" | "open" | "lost";

export const connection = signal<ConnectionState>("connecting");
export const source = signal<SourceState | undefined>(undefined);
/** Count up when the map, or the policies, may differ from what was read. */
export const mapChanged = signal(0);
export const policiesChanged = signal(0);
/** Counts connections: a restarted process does not know revisions of the previous one. */
export const connections = signal(0);

type DecisionListener = (decisions: readonly LiveDecision[]) => void;
const decisionListeners = new Set<DecisionListener>();

export function onDecisions(listener: DecisionListener): () => void {
  decisionListeners.add(listener);
  return () => decisionListeners.delete(listener);
}

const RECONNECT_MS = 1_000;

export function connect(): void {
  const events = new EventSource("/api/events");
  const on = <K extends keyof ServerEvents>(name: K, listener: (data: ServerEvents[K]) => void) =>
    events.addEventListener(name, (event) => listener(JSON.parse((event as MessageEvent<string>).data)));
  events.onopen = () => {
    connection.value = "open";
    signedOut.value = false;
    connections.value++;
    mapChanged.value++;
    policiesChanged.value++;
  };
  on("source", (state) => {
    source.value = state;
  });
  on("changed", (changed) => {
    if (changed.map) mapChanged.value++;
    if (changed.policies) policiesChanged.value++;
  });
  on("decisions", (decisions) => {
    for (const listener of decisionListeners) listener(decisions);
  });
  events.onerror = () => {
    connection.value = "lost";
    events.close();
    setTimeout(reconnect, RECONNECT_MS);
  };
}

/** An EventSource does not say why it was refused: a call does. */
async function reconnect(): Promise<void> {
  try {
    await api("/api/overview");
    connect();
  } catch {
    setTimeout(reconnect, RECONNECT_MS);
  }
}

// -------------------------------------------------------------------------------------------------------------------- data

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: ApiFailure | undefined;
  /** For longer than a moment. */
  readonly slow: boolean;
}

const SLOW_MS = 200;

function failureOf(error: unknown): ApiFailure {
  return error instanceof ApiFailure ? error : new ApiFailure(0, { message: String(error) });
}

/**
 * The data at a path of the API. Read again when `changes` counts up, one call at a time; the previous data stay until the new data
 * arrive. Without a path nothing is read.
 */
export function useData<T>(path: string | undefined, changes?: Signal<number>): Loaded<T> {
  const state = useSignal<Loaded<T> & { readonly path?: string }>({
    data: undefined,
    error: undefined,
    slow: false,
  });
  const count = changes?.value;
  const calls = useRef({ running: false, again: false, path: "" });
  useEffect(() => {
    const call = calls.current;
    call.path = path ?? "";
    if (path === undefined) {
      state.value = { data: undefined, error: undefined, slow: false };
      return;
    }
    if (state.value.path !== path) state.value = { data: undefined, error: undefined, slow: false, path };
    if (call.running) {
      call.again = true;
      return;
    }
    const read = async (): Promise<void> => {
      const wanted = call.path;
      if (wanted === "") return;
      call.running = true;
      call.again = false;
      const timer = setTimeout(() => {
        if (state.value.data === undefined) state.value = { ...state.value, slow: true };
      }, SLOW_MS);
      try {
        const data = await api<T>(wanted);
        if (call.path === wanted) state.value = { data, error: undefined, slow: false, path: wanted };
      } catch (error) {
        // If only the connection is lost, the shown data stay, and the banner says so.
        const failure = failureOf(error);
        const kept = failure.status === 0 && state.value.path === wanted ? state.value.data : undefined;
        if (call.path === wanted)
          state.value = {
            data: kept,
            error: kept === undefined ? failure : undefined,
            slow: false,
            path: wanted,
          };
      }
      clearTimeout(timer);
      call.running = false;
      if (call.again || call.path !== wanted) await read();
    };
    void read();
  }, [path, count]);
  useEffect(
    () => () => {
      calls.current.path = "";
    },
    [],
  );
  return state.value.path === path ? state.value : { data: undefined, error: undefined, slow: false };
}

/** The result of the last call that `run` made. */
export function useCall<T>(): Loaded<T> & {
  readonly run: (path: string, body?: unknown) => void;
  readonly clear: () => void;
} {
  const state = useSignal<Loaded<T>>({ data: undefined, error: undefined, slow: false });
  const current = useRef<AbortController | undefined>(undefined);
  const run = (path: string, body?: unknown): void => {
    current.current?.abort();
    const abort = new AbortController();
    current.current = abort;
    const timer = setTimeout(() => {
      if (!abort.signal.aborted) state.value = { ...state.value, slow: true };
    }, SLOW_MS);
    api<T>(path, body, abort.signal)
      .then(
        (data) => {
          state.value = { data, error: undefined, slow: false };
        },
        (error) => {
          if (!abort.signal.aborted) state.value = { data: undefined, error: failureOf(error), slow: false };
        },
      )
      .finally(() => clearTimeout(timer));
  };
  const clear = (): void => {
    current.current?.abort();
    state.value = { data: undefined, error: undefined, slow: false };
  };
  return { ...state.value, run, clear };
}

/** The map, kept up to date by differences: only nodes that changed come again. */
export function useMap(group: string, lens: string): Loaded<NodeMap> {
  const path = href("/api/map", { group, lens });
  const known = useRef<{ path: string; connection: number; map: NodeMap } | undefined>(undefined);
  const state = useSignal<Loaded<NodeMap>>({ data: undefined, error: undefined, slow: false });
  const calls = useRef({ running: false, again: false, path: "" });
  const count = mapChanged.value;
  useEffect(() => {
    const call = calls.current;
    call.path = path;
    if (call.running) {
      call.again = true;
      return;
    }
    const read = async (): Promise<void> => {
      const wanted = call.path;
      if (wanted === "") return;
      call.running = true;
      call.again = false;
      const timer = setTimeout(() => {
        state.value = { ...state.value, slow: true };
      }, SLOW_MS);
      try {
        const old = known.current;
        const usable = old !== undefined && old.path === wanted && old.connection === connections.value;
        const answer = await api<NodeMap>(usable ? `${wanted}&since=${old.map.revision}` : wanted);
        const merged = usable ? merge(old.map, answer) : answer;
        const map = merged ?? (await api<NodeMap>(wanted));
        known.current = { path: wanted, connection: connections.value, map };
        if (call.path === wanted) state.value = { data: map, error: undefined, slow: false };
      } catch (error) {
        const kept = known.current?.path === wanted ? known.current.map : undefined;
        state.value = { data: kept, error: kept === undefined ? failureOf(error) : undefined, slow: false };
      }
      clearTimeout(timer);
      call.running = false;
      if (call.again || call.path !== wanted) await read();
    };
    void read();
  }, [path, count]);
  useEffect(
    () => () => {
      calls.current.path = "";
    },
    [],
  );
  return state.value;
}

/** `undefined` if the groups have changed: nodes name their group by its index. */
function merge(old: NodeMap, answer: NodeMap): NodeMap | undefined {
  if (answer.whole) return answer;
  if (
    old.groups.length !== answer.groups.length ||
    old.groups.some(({ key }, index) => answer.groups[index]?.key !== key)
  )
    return undefined;
  if (answer.nodes.length === 0 && answer.gone.length === 0)
    return { ...answer, nodes: old.nodes, whole: true };
  const changed = new Map(answer.nodes.map((node) => [node.name, node]));
  const gone = new Set(answer.gone);
  const nodes = old.nodes
    .filter(({ name }) => !gone.has(name))
    .map((node) => {
      const next = changed.get(node.name);
      changed.delete(node.name);
      return next ?? node;
    });
  // A new node has no place among the old ones yet.
  if (changed.size > 0) return undefined;
  return { ...answer, nodes, whole: true };
}
