import type { EventToWrite, ObjectReference } from "../../core/decision/finding.ts";
import { EVENT_ANNOTATIONS, isAboutPolicy } from "../../core/evaluate/effects.ts";
import type { JsonObject } from "../../core/json.ts";
import { isNotFound, StatusError } from "../client/api-response.ts";
import { type ApiResponse, type Client, ConnectionError } from "../client/client.ts";
import { pathSegment } from "../client/discovery.ts";
import { microTime } from "../client/micro-time.ts";
import { EventCorrelator, type EventSeries } from "./event-correlator.ts";
import { type FindLive, regardingLive } from "./live-objects.ts";

/** A domain and a name, as events.k8s.io requires. */
const REPORTING_CONTROLLER = "usher.dev/usher";

/** Marks events of callers that no certificate verifies. */
const CALLER_ANNOTATION = "usher.dev/caller";

/** Bounds the number of writes per interval. */
const WRITE_EVERY_MS = 1_000;
const MOST_AT_ONCE = 20;

/** The API server's limit; the end of a pod's name is its unique part. */
const LONGEST_INSTANCE = 128;
/** The length of the object's name within the Event's, which may have 253 characters. */
const LONGEST_OBJECT_NAME = 200;

interface EventRecorderOptions {
  readonly client: Client;
  /** The replica: the pod's name. */
  readonly instance: string;
  /** The apiVersion of a kind, where known; without it `kubectl describe` finds events by kind and name. */
  readonly apiVersionOf?: (kind: string) => string | undefined;
  /** Reads the objects of events of unverified callers. @default such events are not written */
  readonly findLive?: FindLive;
  /** Milliseconds since 1970, for what is written. */
  readonly now?: () => number;
  /** Monotonic milliseconds, for all limits: the wall clock may be set back. */
  readonly clock?: () => number;
  readonly correlator?: EventCorrelator;
}

/** Writes events after the response. `add` never waits and never fails; events that can't be written count as dropped. */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #correlator: EventCorrelator;
  readonly #now: () => number;
  readonly #clock: () => number;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #stopped = false;
  #created = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#correlator = options.correlator ?? new EventCorrelator();
    this.#now = options.now ?? Date.now;
    this.#clock = options.clock ?? (() => performance.now());
  }

  /** Events never written, for a metric. */
  get dropped(): number {
    return this.#correlator.dropped;
  }

  add(events: readonly EventToWrite[]): void {
    for (const event of events) this.#correlator.record(event, this.#clock());
    this.#schedule();
  }

  /** Writes due events once more, then stops. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    // Events added during a write are not part of it.
    await this.#writing;
    await this.flush();
  }

  /** Writes events that are due now. */
  flush(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  #schedule(): void {
    if (this.#stopped || this.#timer !== undefined || !this.#correlator.pending) return;
    this.#timer = setTimeout(async () => {
      await this.flush();
      this.#timer = undefined;
      this.#schedule();
    }, WRITE_EVERY_MS).unref();
  }

  /** In sequence: events are not worth a second connection. */
  async #write(): Promise<void> {
    for (const series of this.#correlator.due(this.#clock(), MOST_AT_ONCE)) {
      try {
        const response = await (series.name === undefined
          ? this.#create(series)
          : this.#updateCount(series, series.name));
        if (response === undefined) this.#correlator.drop(series);
        else this.#handleResponse(series, response);
      } catch (error) {
        // API server unreachable: the series waits in the correlator, which is bounded.
        if (error instanceof ConnectionError) return this.#correlator.deferred(series, this.#clock());
        if (error instanceof StatusError) this.#correlator.failed(series, this.#clock());
        // The path is invalid, for example by its namespace.
        else this.#correlator.drop(series);
      }
    }
  }

  #handleResponse(series: EventSeries, response: ApiResponse & { readonly name: string }): void {
    const now = this.#clock();
    if (response.status < 300) this.#correlator.written(series, response.name, now);
    // Events expire after an hour; a later one is created again.
    else if (series.name !== undefined && isNotFound(response, series.name))
      this.#correlator.written(series, undefined, now);
    // 429 and 5xx are transient; anything else would be rejected again.
    else if (response.status < 500 && response.status !== 429) this.#correlator.drop(series);
    else this.#correlator.failed(series, now);
  }

  /** `undefined` if an unverified caller named an object that does not exist. */
  async #create(series: EventSeries): Promise<(ApiResponse & { readonly name: string }) | undefined> {
    const event = await this.#checked(series.event);
    if (event === undefined) return undefined;
    const name = this.#nameFor(event);
    const body = this.#body({ ...series, event }, name);
    return { ...(await this.#options.client.request("POST", collectionOf(event), { body })), name };
  }

  async #checked(event: EventToWrite): Promise<EventToWrite | undefined> {
    const { findLive } = this.#options;
    if (event.unverified !== true || isAboutPolicy(event)) return event;
    return findLive && (await regardingLive(event, findLive));
  }

  async #updateCount(
    { event, count, lastAt }: EventSeries,
    name: string,
  ): Promise<ApiResponse & { readonly name: string }> {
    const path = `${collectionOf(event)}/${pathSegment("name", name)}`;
    const body = { series: { count, lastObservedTime: this.#time(lastAt) } };
    const contentType = "application/merge-patch+json";
    return { ...(await this.#options.client.request("PATCH", path, { body, contentType })), name };
  }

  /** As client-go names them: the object, and a unique suffix. */
  #nameFor({ regarding }: EventToWrite): string {
    const about = regarding.name === "" ? regarding.kind.toLowerCase() : regarding.name;
    const number = `${this.#now().toString(16)}${(this.#created++ % 65_536).toString(16).padStart(4, "0")}`;
    const instance = this.#options.instance.slice(-10).replace(/[^a-z0-9]/g, "");
    // A DNS label must end with a letter or a digit.
    return `${about.slice(0, LONGEST_OBJECT_NAME).replace(/[^a-z0-9]+$/, "")}.${number}${instance}`;
  }

  #body({ event, count, firstAt, lastAt }: EventSeries, name: string): JsonObject {
    const { regarding, policy, rule, type, reason, message, unverified } = event;
    const same = isAboutPolicy(event);
    const annotations = {
      ...(unverified === true ? { [CALLER_ANNOTATION]: "unverified" } : {}),
      ...(rule === undefined || policy?.generation === undefined
        ? {}
        : { [EVENT_ANNOTATIONS.generation]: String(policy.generation) }),
      ...(rule === undefined ? {} : { [EVENT_ANNOTATIONS.rule]: rule }),
    };
    const marks = Object.keys(annotations).length === 0 ? {} : { annotations };
    const about = this.#reference(regarding, regarding.uid ?? (same ? policy?.uid : undefined));
    return {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name, namespace: namespaceOf(event), ...marks },
      eventTime: this.#time(firstAt),
      reportingController: REPORTING_CONTROLLER,
      reportingInstance: this.#options.instance.slice(-LONGEST_INSTANCE),
      action: "Admission",
      type,
      reason,
      note: noteOf(message),
      regarding: about,
      ...(policy === undefined || same ? {} : { related: this.#reference(policy) }),
      ...(count < 2 ? {} : { series: { count, lastObservedTime: this.#time(lastAt) } }),
    };
  }

  /** A monotonic time as wall clock time. */
  #time(at: number): string {
    return microTime(this.#now() - (this.#clock() - at));
  }

  #reference({ kind, namespace, name, ...known }: ObjectReference, uid = known.uid): JsonObject {
    const apiVersion = known.apiVersion ?? this.#options.apiVersionOf?.(kind);
    return {
      kind,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(apiVersion === undefined ? {} : { apiVersion }),
      ...(uid === undefined ? {} : { uid }),
    };
  }
}

/** Events about cluster-scoped objects are in `default`, where kubectl looks for them. */
function namespaceOf({ regarding }: EventToWrite): string {
  return regarding.namespace ?? "default";
}

function collectionOf(event: EventToWrite): string {
  return `/apis/events.k8s.io/v1/namespaces/${pathSegment("namespace", namespaceOf(event))}/events`;
}

/** The API server limits notes to 1,024 bytes of UTF-8. */
const LONGEST_NOTE_BYTES = 1_024;
const ELLIPSIS = "…";

/** A message as the note of an Event, cut at a character boundary. */
export function noteOf(message: string): string {
  if (Buffer.byteLength(message) <= LONGEST_NOTE_BYTES) return message;
  // encodeInto writes whole characters only.
  const room = new Uint8Array(LONGEST_NOTE_BYTES - Buffer.byteLength(ELLIPSIS));
  return message.slice(0, new TextEncoder().encodeInto(message, room).read) + ELLIPSIS;
}
