import type { EventToWrite } from "../../core/evaluate/effects.ts";
import type { ObjectReference } from "../../core/evaluate/finding.ts";
import type { JsonObject } from "../../core/json.ts";
import { isNotFound } from "../client/api-response.ts";
import { type ApiResponse, type Client, ConnectionError } from "../client/client.ts";
import { microTime } from "../client/micro-time.ts";
import { pathSegment } from "../client/path-segment.ts";
import { EventCorrelator, type EventSeries } from "./event-correlator.ts";
import { noteOf } from "./event-note.ts";

/** Who says it, in the form that Kubernetes asks for: a domain and a name. */
const CONTROLLER = "usher.dev/usher";

/** How often what has gathered is written, and how much of it at most: so many a second, whatever happens. */
const WRITE_EVERY_MS = 1_000;
const MOST_AT_ONCE = 20;

/** The API server takes no longer one; the end of a pod's name is what tells it from others. */
const LONGEST_INSTANCE = 128;
/** Of the object's name in the Event's, which may have 253 characters. */
const LONGEST_ABOUT = 200;

export interface EventRecorderOptions {
  readonly client: Client;
  /** Which replica says it: the pod's name. */
  readonly instance: string;
  /** The apiVersion of a kind, where it is known; without one an event is found by kind and name. */
  readonly apiVersionOf?: (kind: string) => string | undefined;
  /** Milliseconds since 1970, for what is written. */
  readonly now?: () => number;
  /** Milliseconds, any origin, for all limits: the other may be set back by a year. */
  readonly clock?: () => number;
  readonly book?: EventCorrelator;
}

/** Writes events after the answer. To add one never waits and never fails; what can't be written is counted as dropped. */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #book: EventCorrelator;
  readonly #now: () => number;
  readonly #clock: () => number;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #stopped = false;
  #made = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#book = options.book ?? new EventCorrelator();
    this.#now = options.now ?? Date.now;
    this.#clock = options.clock ?? (() => performance.now());
  }

  /** Never told, for a metric. */
  get dropped(): number {
    return this.#book.dropped;
  }

  add(events: readonly EventToWrite[]): void {
    for (const event of events) this.#book.note(event, this.#clock());
    this.#schedule();
  }

  /** Writes once more what is due, and no more after that. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    // What came while others were being written is not among those.
    await this.#writing;
    await this.flush();
  }

  /** Writes what is due now. */
  flush(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  #schedule(): void {
    if (this.#stopped || this.#timer !== undefined || !this.#book.pending) return;
    this.#timer = setTimeout(async () => {
      await this.flush();
      this.#timer = undefined;
      this.#schedule();
    }, WRITE_EVERY_MS).unref();
  }

  /** One after the other: events are never worth a second connection. */
  async #write(): Promise<void> {
    for (const series of this.#book.due(this.#clock(), MOST_AT_ONCE)) {
      try {
        const answer = await (series.name === undefined
          ? this.#create(series)
          : this.#recount(series, series.name));
        this.#settle(series, answer);
      } catch (error) {
        // No API server: it waits in the book, which is bounded, until there is one again.
        if (error instanceof ConnectionError) return this.#book.unanswered(series, this.#clock());
        // It can't even be asked for, as in a namespace that no object can be in.
        this.#book.drop(series);
      }
    }
  }

  #settle(series: EventSeries, answer: ApiResponse & { readonly name: string }): void {
    const now = this.#clock();
    if (answer.status < 300) this.#book.told(series, answer.name, now);
    // An Event lives for an hour; one that came again after that begins anew.
    else if (series.name !== undefined && isNotFound(answer, series.name))
      this.#book.told(series, undefined, now);
    // 429 and 5xx pass; anything else will be answered the same way the next time.
    else if (answer.status < 500 && answer.status !== 429) this.#book.drop(series);
    else this.#book.refused(series, now);
  }

  async #create(series: EventSeries): Promise<ApiResponse & { readonly name: string }> {
    const name = this.#nameFor(series.event);
    const body = this.#body(series, name);
    return { ...(await this.#options.client.request("POST", collectionOf(series.event), { body })), name };
  }

  async #recount(
    { event, count, lastAt }: EventSeries,
    name: string,
  ): Promise<ApiResponse & { readonly name: string }> {
    const path = `${collectionOf(event)}/${pathSegment("name", name)}`;
    const body = { series: { count, lastObservedTime: this.#time(lastAt) } };
    const contentType = "application/merge-patch+json";
    return { ...(await this.#options.client.request("PATCH", path, { body, contentType })), name };
  }

  /** As Kubernetes names them: after the object, and a number that nobody else has. */
  #nameFor({ regarding }: EventToWrite): string {
    const about = regarding.name === "" ? regarding.kind.toLowerCase() : regarding.name;
    const number = `${this.#now().toString(16)}${(this.#made++ % 65_536).toString(16).padStart(4, "0")}`;
    const instance = this.#options.instance.slice(-10).replace(/[^a-z0-9]/g, "");
    // A part of a name must end with a letter or a digit.
    return `${about.slice(0, LONGEST_ABOUT).replace(/[^a-z0-9]+$/, "")}.${number}${instance}`;
  }

  #body({ event, count, firstAt, lastAt }: EventSeries, name: string): JsonObject {
    const { regarding, policy, type, reason, message } = event;
    const same =
      policy?.kind === regarding.kind &&
      policy.name === regarding.name &&
      policy.namespace === regarding.namespace;
    const about = this.#reference(regarding, regarding.uid ?? (same ? policy?.uid : undefined));
    return {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name, namespace: namespaceOf(event) },
      eventTime: this.#time(firstAt),
      reportingController: CONTROLLER,
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

  /** When something was, by the time of day as it is known now. */
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

/** EventRecorder about cluster-scoped objects live in `default`: kubectl looks there. */
function namespaceOf({ regarding }: EventToWrite): string {
  return regarding.namespace ?? "default";
}

function collectionOf(event: EventToWrite): string {
  return `/apis/events.k8s.io/v1/namespaces/${pathSegment("namespace", namespaceOf(event))}/events`;
}
