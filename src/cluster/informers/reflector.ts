import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Json } from "../../core/json.ts";
import { stringAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import type { TimeSlices } from "../../core/time-slices.ts";
import type { Change } from "../../core/view/view.ts";
import type { Client, Stream } from "../client/client.ts";
import { collectionPath, DiscoveryError, type ResourceResolver } from "../client/discovery.ts";
import { LineTooLongError } from "../client/lines.ts";
import { type GetPage, ListError, PageSize, readPage } from "../client/list-pages.ts";
import { TooLargeError } from "../client/response-body.ts";
import { REFLECTOR_LIMITS, type ReflectorLimits } from "./reflector-limits.ts";
import { ReflectorState } from "./reflector-state.ts";
import type { Action, ReflectorInput } from "./reflector-steps.ts";
import { slicesFrom, type TimeSliceQueue } from "./time-slices.ts";
import { inputOf, type Prune, pageOf, rejectionOf } from "./watch-event.ts";

export interface ReflectorOptions {
  readonly client: Client;
  readonly resources: ResourceResolver;
  readonly resource: string;
  readonly labelSelector?: string;
  /** Only this object, without permissions on others. @default all objects of the resource */
  readonly only?: { readonly namespace?: string; readonly name: string };
  /** Only whether it is served matters: it is never listed. @default false */
  readonly presence?: boolean;
  readonly prune: Prune;
  readonly timeSlices: TimeSliceQueue;
  readonly log: Log;
  /** Called with the changes of each step; `synced` when they complete a list. */
  readonly onChange: (changes: readonly Change[], synced: boolean) => void;
  /** Called with the resourceVersion that all changes until now add up to, bookmarks included. */
  readonly onVersion?: (version: string) => void;
  /** Called for an object that a list left out because of its size. */
  readonly onLeftOut?: (object: { readonly namespace: string; readonly name: string }) => void;
  /** Called when `served` or `errors` of the status may have changed. */
  readonly onStatus?: () => void;
  readonly limits?: ReflectorLimits;
  readonly random?: () => number;
  readonly now?: () => number;
}

/** The state of list and watch of one resource, for readiness and metrics. */
export interface ReflectorStatus {
  /** `undefined`: not known yet. */
  readonly served: boolean | undefined;
  /** Milliseconds since 1970 of the last response or event, bookmarks included. */
  readonly lastEventAt: number | undefined;
  readonly relists: number;
  readonly errors: number;
  readonly lastError: string | undefined;
  readonly objects: number;
}

type Verb = Exclude<Action["do"], "wait">;

const FAILURES: Readonly<Record<Verb, string>> = {
  locate: "failed to discover resource",
  list: "failed to list resource",
  "stream list": "failed to list resource",
  watch: "watch of resource failed",
};

/** List and watch of one resource: performs the actions of the state machine and feeds it the results. */
export class Reflector {
  readonly #options: ReflectorOptions;
  readonly #state: ReflectorState;
  readonly #limits: ReflectorLimits;
  readonly #slices: TimeSlices;
  readonly #pageSize: PageSize;
  readonly #stop = new AbortController();
  readonly #now: () => number;
  #running: Promise<void> | undefined;
  #path = "";
  #served: boolean | undefined;
  #lastEventAt: number | undefined;
  #errors = 0;
  #lastError: string | undefined;
  #version: string | undefined;

  constructor(options: ReflectorOptions) {
    this.#options = options;
    this.#limits = options.limits ?? REFLECTOR_LIMITS;
    this.#now = options.now ?? Date.now;
    this.#state = new ReflectorState(options.resource, options.random ?? Math.random, this.#limits);
    this.#slices = slicesFrom(options.timeSlices);
    this.#pageSize = new PageSize(this.#limits.pageLimit);
  }

  get status(): ReflectorStatus {
    return {
      served: this.#served,
      lastEventAt: this.#lastEventAt,
      relists: this.#state.relists,
      errors: this.#errors,
      lastError: this.#lastError,
      objects: this.#state.size,
    };
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    let action = this.#state.start(this.#now());
    while (!this.#stop.signal.aborted) action = await this.#perform(action);
  }

  async #perform(action: Action): Promise<Action> {
    if (action.do === "watch" || action.do === "stream list") return this.#follow(action);
    // Each of these yields one input, and the next action.
    return this.#step(await this.#performOnce(action)) ?? action;
  }

  async #performOnce(action: Exclude<Action, { do: "watch" | "stream list" }>): Promise<ReflectorInput> {
    const { signal } = this.#stop;
    if (action.do === "wait") {
      await sleep(action.ms, undefined, { signal, ref: true }).catch(() => undefined);
      return { saw: "timer" };
    }
    try {
      return action.do === "locate" ? await this.#locate() : await this.#list(action.next);
    } catch (error) {
      return this.#failed(action.do, error);
    }
  }

  async #locate(): Promise<ReflectorInput> {
    const { resources, resource } = this.#options;
    try {
      const served = await resources.discover(resource, this.#stop.signal);
      this.#served = served !== undefined;
      if (served !== undefined) this.#path = collectionPath(served, this.#options.only?.namespace);
      this.#options.onStatus?.();
      if (served !== undefined && this.#options.presence === true) await this.#stayPresent();
      return { saw: served === undefined ? "not served" : "served" };
    } catch (error) {
      if (!(error instanceof DiscoveryError)) throw error;
      this.#report("locate", error.message);
      return rejectionOf(error.response);
    }
  }

  /** Known to be served, with nothing to list. */
  async #stayPresent(): Promise<void> {
    this.#options.onChange([], true);
    if (!this.#stop.signal.aborted) await once(this.#stop.signal, "abort");
  }

  async #list(next: string | undefined): Promise<ReflectorInput> {
    const { client, prune, onLeftOut } = this.#options;
    const { signal } = this.#stop;
    const get: GetPage = (path, options) => client.request("GET", path, { ...options, signal });
    try {
      const page = await readPage(get, this.#path, { ...this.#selection, continue: next }, this.#pageSize);
      this.#lastEventAt = this.#now();
      if (page.skipped !== undefined) onLeftOut?.(page.skipped);
      await this.#slices.next();
      return pageOf(page, prune);
    } catch (error) {
      if (!(error instanceof ListError) || error.status === 200) throw error;
      const { body, text } = error.response;
      this.#report("list", `${error.status} ${stringAt(body, "message") ?? text.slice(0, 200)}`);
      return rejectionOf(error.response);
    }
  }

  async #follow(action: Action & { do: "watch" | "stream list" }): Promise<Action> {
    const { client, prune } = this.#options;
    let idle = false;
    let stream: Stream | undefined;
    let idleTimer: NodeJS.Timeout | undefined;
    try {
      stream = await client.stream(`${this.#path}?${this.#watchQuery(action)}`, {
        signal: this.#stop.signal,
      });
      const { status, headers, lines, close } = stream;
      idleTimer = setTimeout(() => {
        idle = true;
        close();
      }, this.#limits.idleTimeoutMs);
      for await (const line of lines) {
        idleTimer.refresh();
        this.#lastEventAt = this.#now();
        await this.#slices.next();
        const input = status === 200 ? inputOf(line, prune) : rejectionOf(asResponse(status, headers, line));
        const next = this.#step(input);
        // An older API server refuses to stream a list, which then comes in pages: nothing has failed.
        const inPages = action.do === "stream list" && next?.do === "list";
        if (input.saw === "error status" && !inPages)
          this.#report(action.do, `${input.status} ${messageOf(line)}`);
        if (next !== undefined) return next;
      }
    } catch (error) {
      return this.#step(this.#failed(action.do, error)) ?? action;
    } finally {
      clearTimeout(idleTimer);
      stream?.close();
    }
    if (idle) {
      this.#report(action.do, `no event within ${this.#limits.idleTimeoutMs} ms`);
      client.closeIdleConnections?.();
    }
    return this.#step({ saw: idle ? "idle timeout" : "end" }) ?? action;
  }

  #step(input: ReflectorInput): Action | undefined {
    const { changes, synced, action } = this.#state.step(input, this.#now());
    if (changes.length > 0 || synced) this.#options.onChange(changes, synced);
    const { version } = this.#state;
    if (version !== undefined && version !== this.#version) this.#options.onVersion?.(version);
    this.#version = version;
    return action;
  }

  #failed(verb: Verb, error: unknown): ReflectorInput {
    if (!this.#stop.signal.aborted)
      this.#report(verb, error instanceof Error ? error.message : String(error));
    const cause = error instanceof Error ? error.cause : undefined;
    const tooLarge = error instanceof TooLargeError || cause instanceof LineTooLongError;
    return { saw: "failure", tooLarge };
  }

  #report(verb: Verb, error: string): void {
    this.#errors += 1;
    this.#lastError = error;
    this.#options.log.warn({ resource: this.#options.resource, error }, FAILURES[verb]);
    this.#options.onStatus?.();
  }

  #watchQuery(action: Action & { do: "watch" | "stream list" }): URLSearchParams {
    return new URLSearchParams({
      ...this.#selection,
      watch: "true",
      allowWatchBookmarks: "true",
      timeoutSeconds: String(action.timeoutSeconds),
      ...(action.do === "watch"
        ? { resourceVersion: action.version }
        : { sendInitialEvents: "true", resourceVersionMatch: "NotOlderThan" }),
    });
  }

  get #selection(): Record<string, string> {
    const { labelSelector, only } = this.#options;
    return {
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(only === undefined ? {} : { fieldSelector: `metadata.name=${only.name}` }),
    };
  }
}

function asResponse(status: number, headers: Readonly<Record<string, string>>, text: string) {
  return { status, headers, body: parsed(text), text };
}

function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function messageOf(line: string): string {
  const body = parsed(line);
  return stringAt(body, "object", "message") ?? stringAt(body, "message") ?? line.slice(0, 200).trim();
}
