import { WATCHDOG_METRICS } from "../../admission/observe/metrics/own-metrics.ts";
import { INDEX, metricsPage, type Page, UNKNOWN_PAGE } from "../../admission/observe/ops-pages.ts";
import { isNotFound, StatusError } from "../../cluster/client/api-response.ts";
import type { Client } from "../../cluster/client/client.ts";
import { pause } from "../../cluster/client/retry.ts";
import type { EventToWrite } from "../../core/decision/finding.ts";
import type { PatchOperation } from "../../core/decision/patch.ts";
import { at, isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { STANDBY } from "../../core/registration/webhooks.ts";
import { DeduplicatedLog } from "../deduplicated-log.ts";
import {
  annotationPath,
  deploymentEvent,
  deploymentPath,
  openableEntries,
  openedNote,
  openOperations,
} from "../webhooks/opened.ts";
import { serviceEndpoints } from "../webhooks/service-endpoints.ts";
import { STANDBY_PATH, standbyOf, standbyOperations } from "../webhooks/standby.ts";
import { type Absence, type AbsenceRecord, beginAbsence, LONGEST_GAP_MS, observe } from "./absence.ts";

interface WatchdogOptions {
  readonly client: Pick<Client, "request">;
  readonly namespace: string;
  readonly openAfterMs: number;
  /** The time after which policies of the API server stand in for webhooks, if a module has such policies. */
  readonly fallbackAfterMs: number;
  readonly log: Log;
  readonly publish: (events: readonly EventToWrite[]) => void;
  /** Milliseconds of a monotonic clock. */
  readonly clock?: () => number;
  /** Milliseconds since 1970, for display. */
  readonly now?: () => number;
}

/** The watchdog's state at one time. */
interface WatchdogState {
  /** For how long no replica was ready, as far as it was observed. */
  readonly unreadyMs: number;
  /** Webhook configurations with entries that were opened and are not closed again. */
  readonly opened: number;
  /** Since it last saw whether replicas are ready; infinite if it never did. */
  readonly lookAgeMs: number;
  /** Since it last tried. */
  readonly stepAgeMs: number;
}

/** As often as the kubelet probes replicas. One small list each time. */
const POLL_MS = 2_000;

/** Records of the absence that are written until webhooks are opened. A crash of the watchdog costs the time of one. */
const RECORDS = 10;

/** The watchdog's observations, on a webhook configuration, for the next one. */
const RECORD_ANNOTATION = "usher.dev/unready";

/** From the end of a standby by a replica that starts until the replica is ready, or has failed to become so. */
const STARTING_MS = 60_000;

const FIELD_MANAGER = "usher-watchdog";
const WEBHOOKS = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"].map(
  (resource) => `/apis/admissionregistration.k8s.io/v1/${resource}/${OWN_NAMES.webhooks}`,
);

/**
 * The dead-man rule: opens the fail-closed webhooks that may be opened once no replica was ready for some time. A ready
 * replica closes them. It runs apart from the replicas, knows no modules, and trusts only its own observations.
 */
export class Watchdog {
  readonly #options: WatchdogOptions;
  readonly #deduplicated: DeduplicatedLog;
  readonly #clock: () => number;
  #absence: Absence | undefined;
  /** The content of the record, as far as this watchdog knows. */
  #recordedMs: number | undefined;
  /** Configurations with the annotation that they were opened. */
  readonly #opened = new Set<string>();
  #steppedAt: number;
  /** Whether this watchdog began a standby that it has not seen end. */
  #onStandby = false;
  /** Until the label was read: another watchdog may have begun a standby. */
  #mayBeOnStandby = true;
  /** When a replica that is about to serve ended the standby, by the clock. */
  #endedAt = Number.NEGATIVE_INFINITY;

  constructor(options: WatchdogOptions) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
    this.#steppedAt = this.#clock();
    this.#deduplicated = new DeduplicatedLog(options.log, this.#clock);
  }

  get state(): WatchdogState {
    const now = this.#clock();
    return {
      unreadyMs: this.#absence?.observedMs ?? 0,
      opened: this.#opened.size,
      lookAgeMs: now - (this.#absence?.last.at ?? Number.NEGATIVE_INFINITY),
      stepAgeMs: now - this.#steppedAt,
    };
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.step();
      await pause(Math.min(POLL_MS, this.#options.openAfterMs / RECORDS), signal);
    }
  }

  /** Observes the replicas once, and acts on it. Never rejects. */
  async step(): Promise<void> {
    try {
      await this.#look();
      this.#deduplicated.succeeded("replicas");
    } catch (error) {
      this.#deduplicated.failed("replicas", error, "failed to watch the replicas, retrying");
    }
    this.#steppedAt = this.#clock();
  }

  async #look(): Promise<void> {
    const { client, namespace, openAfterMs, log } = this.#options;
    const { endpoints, version } = await serviceEndpoints(client, namespace, OWN_NAMES.service);
    const seen = { at: this.#clock(), ready: endpoints.some(({ ready }) => ready), version };
    const before = this.#absence;
    if (before === undefined) {
      const record = await this.#readNotes();
      this.#recordedMs = record?.observedMs;
      this.#absence = beginAbsence(seen, record);
    } else this.#absence = observe(before, seen);
    const { observedMs } = this.#absence;
    if (seen.ready !== before?.last.ready)
      log.info({ seconds: observedMs / 1_000 }, seen.ready ? "a replica is ready" : "no replica is ready");
    await this.#standBy(!seen.ready && observedMs >= this.#options.fallbackAfterMs, seen.ready, observedMs);
    if (seen.ready) {
      if (this.#recordedMs !== undefined) await this.#writeRecord(undefined);
      // The ready replica closes them; until then, they count as open.
      if (this.#opened.size > 0) await this.#readNotes();
    } else if (observedMs >= openAfterMs) await this.#open(observedMs);
    else if (Math.abs(observedMs - (this.#recordedMs ?? 0)) >= openAfterMs / RECORDS)
      await this.#writeRecord({ observedMs, version });
  }

  /**
   * Lets policies of the API server stand in for webhooks while no replica is ready, and ends it. A replica ends it itself
   * before it serves: after that the watchdog gives the replica time to become ready.
   */
  async #standBy(isDue: boolean, isReady: boolean, observedMs: number): Promise<void> {
    const now = this.#clock();
    if (!(isDue && now - this.#endedAt >= STARTING_MS) && !(isReady && this.#mayBeOnStandby)) return;
    const { log, namespace, publish } = this.#options;
    const live = await this.#read(STANDBY_PATH, OWN_NAMES.webhooks);
    const stored = standbyOf(live);
    if (isDue && this.#onStandby && stored === STANDBY.ready) {
      this.#onStandby = false;
      this.#endedAt = now;
      return;
    }
    this.#onStandby = stored === STANDBY.active;
    this.#mayBeOnStandby = this.#onStandby;
    if (live === undefined || stored === undefined || this.#onStandby === isDue) return;
    if (!(await this.#patch(STANDBY_PATH, live, standbyOperations(isDue ? "active" : "ready")))) return;
    this.#onStandby = isDue;
    this.#mayBeOnStandby = isDue;
    const seconds = Math.floor(observedMs / 1_000);
    const message = isDue
      ? `no replica of usher was ready for ${seconds} s: compiled policies of the API server stand in for webhooks until one is`
      : "a replica is ready: compiled policies of the API server no longer stand in for webhooks";
    log.warn({}, message);
    const deployment = await this.#read(deploymentPath(namespace), OWN_NAMES.deployment).catch(
      () => undefined,
    );
    const reason = isDue ? "StandbyBegan" : "StandbyEnded";
    publish([
      deploymentEvent(namespace, deployment, { type: isDue ? "Warning" : "Normal", reason, message }),
    ]);
  }

  /** Repeated while no replica is ready: entries may have been closed by hand, or restored. */
  async #open(observedMs: number): Promise<void> {
    const { log, namespace, publish, now = Date.now } = this.#options;
    const failures: unknown[] = [];
    for (const path of WEBHOOKS) {
      // A failure with one must not block the other.
      try {
        const live = await this.#read(path, OWN_NAMES.webhooks);
        const names = live === undefined ? [] : openableEntries(live);
        if (live === undefined || names.length === 0) continue;
        const reason = `no replica of usher was ready for ${Math.floor(observedMs / 1_000)} s`;
        const note = { time: new Date(now()).toISOString(), reason };
        if (!(await this.#patch(path, live, openOperations(live, names, note)))) continue;
        this.#opened.add(path);
        const entries = names.join(", ");
        log.warn({ configuration: path, entries, reason }, "webhook entries opened");
        const message = `${reason}: opened ${entries}. Their requests pass without evaluation; a ready replica closes them.`;
        const deployment = await this.#read(deploymentPath(namespace), OWN_NAMES.deployment).catch(
          () => undefined,
        );
        publish([
          deploymentEvent(namespace, deployment, { type: "Warning", reason: "WebhooksOpened", message }),
        ]);
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /** The state of both configurations: which of them are open, and the time observed before. */
  async #readNotes(): Promise<AbsenceRecord | undefined> {
    let record: AbsenceRecord | undefined;
    for (const path of WEBHOOKS) {
      const live = await this.#read(path, OWN_NAMES.webhooks);
      if (openedNote(live) === undefined) this.#opened.delete(path);
      else this.#opened.add(path);
      record ??= recordIn(stringAt(live, "metadata", "annotations", RECORD_ANNOTATION));
    }
    return record;
  }

  /** On each configuration with entries that it may open: one may be deleted. Best effort, because it only bridges a restart. */
  async #writeRecord(record: AbsenceRecord | undefined): Promise<void> {
    for (const path of WEBHOOKS) {
      const live = await this.#read(path, OWN_NAMES.webhooks);
      if (live === undefined) continue;
      const stored = stringAt(live, "metadata", "annotations", RECORD_ANNOTATION);
      const place = annotationPath(RECORD_ANNOTATION);
      if (record !== undefined && openableEntries(live).length > 0)
        await this.#patch(path, live, [{ op: "add", path: place, value: JSON.stringify(record) }]);
      else if (record === undefined && stored !== undefined)
        await this.#patch(path, live, [{ op: "remove", path: place }]);
    }
    this.#recordedMs = record?.observedMs;
  }

  async #read(path: string, name: string): Promise<JsonObject | undefined> {
    const answer = await this.#options.client.request("GET", path);
    if (isNotFound(answer, name)) return undefined;
    if (answer.status !== 200 || !isObject(answer.body)) throw new StatusError(`reading ${path}`, answer);
    return answer.body;
  }

  /** Only the version that was seen; false if there is another by now, such as one that a replica has closed. */
  async #patch(path: string, live: JsonObject, operations: readonly PatchOperation[]): Promise<boolean> {
    const value = stringAt(live, "metadata", "resourceVersion") ?? "";
    const answer = await this.#options.client.request("PATCH", `${path}?fieldManager=${FIELD_MANAGER}`, {
      contentType: "application/json-patch+json",
      body: [...operations, { op: "add", path: "/metadata/resourceVersion", value }] as unknown as Json,
    });
    if (answer.status === 409 || isNotFound(answer, OWN_NAMES.webhooks)) return false;
    if (answer.status >= 300) throw new StatusError(`patching ${path}`, answer);
    return true;
  }
}

/** An unreadable record counts as none. */
function recordIn(text: string | undefined): AbsenceRecord | undefined {
  if (text === undefined) return undefined;
  try {
    const read = JSON.parse(text) as Json;
    const [observedMs, version] = [at(read, "observedMs"), stringAt(read, "version")];
    if (typeof observedMs !== "number" || !(observedMs >= 0) || version === undefined) return undefined;
    return { observedMs, version };
  } catch {
    return undefined;
  }
}

/**
 * Its longest step: one look and both configurations, each read and written with an Event, while every request takes
 * its ten seconds.
 */
const LONGEST_STEP_MS = 120_000;

/** Health and metrics of the watchdog. It is ready once it has seen the replicas, and as long as it sees them. */
export function watchdogPage(path: string, state: WatchdogState): Page {
  const { unreadyMs, opened, lookAgeMs, stepAgeMs } = state;
  switch (path) {
    case "/livez":
    case "/healthz":
      return check(stepAgeMs <= LONGEST_STEP_MS, "it has done nothing", stepAgeMs);
    case "/readyz":
      return check(lookAgeMs <= LONGEST_GAP_MS, "it has not seen the replicas", lookAgeMs);
    case "/metrics":
      return {
        status: 200,
        body: metricsPage(WATCHDOG_METRICS, {
          usher_watchdog_unready_seconds: unreadyMs / 1_000,
          usher_watchdog_opened: opened,
          usher_watchdog_look_age_seconds: lookAgeMs / 1_000,
        }).replaceAll("Infinity", "+Inf"),
      };
    case "/":
      return INDEX;
    default:
      return UNKNOWN_PAGE;
  }
}

function check(holds: boolean, problem: string, ms: number): Page {
  if (holds) return { status: 200, body: "ok\n" };
  const since = Number.isFinite(ms) ? ` for ${Math.floor(ms / 1_000)} s` : " yet";
  return { status: 503, body: `${problem}${since}; its log says why\n` };
}
