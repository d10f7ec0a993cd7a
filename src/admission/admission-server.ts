import { X509Certificate } from "node:crypto";
import type { Count } from "../core/decision/decision.ts";
import type { Effects } from "../core/evaluate/effects.ts";
import type { Source } from "../core/evaluate/source.ts";
import type { Tracing } from "../core/installation/installation.ts";
import type { Log } from "../core/log.ts";
import type { ControllerStats } from "../core/module/reconciler.ts";
import { AggregatedServing } from "./aggregated/aggregated.ts";
import type { LiveFrontProxy } from "./aggregated/front-proxy.ts";
import type { ReviewApi } from "./aggregated/review-api.ts";
import type { Address } from "./http/address.ts";
import { startHeartbeat } from "./observe/health.ts";
import { sampledLog } from "./observe/log-sampling.ts";
import { createMetrics } from "./observe/metrics/metrics.ts";
import { openOps } from "./observe/ops.ts";
import { RecordedDecisions } from "./observe/recorded-decisions.ts";
import type { ReviewTracer } from "./observe/tracing/tracing.ts";
import { afterResponse } from "./review/after-response.ts";
import { ReviewHandler } from "./review/handle.ts";
import type { AcceptsToken } from "./review/routes.ts";
import { CLIENT_CLOSED_REQUEST, HttpsServer } from "./server/https-server.ts";
import { LIMITS, type ServerLimits } from "./server/limits.ts";
import { type DrainOptions, Shutdown } from "./server/shutdown.ts";
import {
  type KeyPair,
  type LivePair,
  makeCertificate,
  namesFor,
  type OwnCertificate,
} from "./tls/certificate.ts";
import { type CertificateFiles, readKeyPair, watchKeyPair } from "./tls/certificate-files.ts";
import type { ClientCheck } from "./tls/client-certificate.ts";

const WEBHOOK_PORT = 8443;
const OPS_PORT = 8080;

/** Reachable from this machine only, unless configured otherwise. */
const LOOPBACK = "127.0.0.1";

export interface AggregatedApi {
  readonly api: ReviewApi;
  readonly frontProxy: LiveFrontProxy;
}

export interface AdmissionOptions {
  readonly source: Source;
  readonly log: Log;
  /** @default 127.0.0.1 */
  readonly bind?: string | undefined;
  /** 0 picks a free one. @default 8443 */
  readonly port?: number | undefined;
  /** 0 picks a free one. @default 8080 */
  readonly opsPort?: number | undefined;
  /** Files to serve with, watched for changes, or a pair that its owner renews. @default one created at start */
  readonly certificate?: CertificateFiles | LivePair | undefined;
  /** Whether API servers trust a certificate chain; `undefined` while that is unknown. @default they do */
  readonly trusts?: ((chain: string) => boolean | undefined) | undefined;
  /** More names for the certificate created at start. */
  readonly names?: readonly string[] | undefined;
  /** @default any client */
  readonly clients?: ClientCheck | undefined;
  /**
   * Also serves reviews as an aggregated API, to the front proxy with these settings; excludes `clients`. @default by
   * webhook paths only
   */
  readonly aggregated?: AggregatedApi | undefined;
  /** Whether usher may write for a call with this path segment. @default for every call */
  readonly acceptsToken?: AcceptsToken | undefined;
  /** Receives events and tallies, after the response. */
  readonly effects?: ((effects: Effects) => void) | undefined;
  /** Reports decisions on the ops port, to this machine alone: where the cluster is files, there are no events to see. @default false */
  readonly reportsDecisions?: boolean | undefined;
  /** Called if a client got no answer: it disconnected, or its connection was closed because of a limit. */
  readonly callFailed?: (() => void) | undefined;
  /** Absent if this process runs no controller. */
  readonly controllerStats?: (() => ControllerStats) | undefined;
  readonly version?: string | undefined;
  /** The collector of review spans. @default reviews are not traced */
  readonly tracing?: Tracing | undefined;
  /** The pod of this replica, for its spans. */
  readonly instance?: string | undefined;
  readonly limits?: Partial<ServerLimits> | undefined;
  /** The time without a heartbeat of the main thread after which `/livez` fails. */
  readonly heartbeatTimeoutMs?: number | undefined;
  /** The wall clock that modules see. */
  readonly now?: (() => number) | undefined;
}

export interface AdmissionServer {
  readonly webhookAddress: Address;
  readonly opsAddress: Address;
  /** The CA that a client must trust, if the certificate was created at start. */
  readonly ca: string | undefined;
  /** Counts for reconcilers, which decide outside of admission. */
  readonly count: (counts: readonly Count[]) => void;
  /** Shuts down gracefully: not ready first, keeps serving for a while, finishes requests in flight. */
  readonly drain: (options?: DrainOptions) => Promise<void>;
  /** Shuts down immediately. */
  readonly close: () => Promise<void>;
}

/** Starts the webhook server and the server of health and metrics. Resolves once both listen; the source may still be syncing. */
export async function startAdmission(options: AdmissionOptions): Promise<AdmissionServer> {
  const { source, bind = LOOPBACK } = options;
  const log = sampledLog(options.log);
  const limits: ServerLimits = { ...LIMITS, ...options.limits };
  // The pair in use, for its metrics.
  const serving: { pair: KeyPair | undefined } = { pair: undefined };
  const { trusts } = options;
  const heartbeat = startHeartbeat(
    source,
    () => trusts === undefined || (serving.pair !== undefined && trusts(serving.pair.cert) === true),
  );
  const stops: (() => unknown)[] = [heartbeat.stop];
  const { aggregated, now } = options;
  const recorded =
    options.reportsDecisions === true && bind === LOOPBACK
      ? new RecordedDecisions(now ?? Date.now)
      : undefined;
  try {
    // A certificate and a thread take a tenth of a second each: start both concurrently.
    const creatingMetrics = createMetrics({
      assembly: () => source.assembly,
      viewAges: () => source.ages?.() ?? [],
      listCuts: () => source.cuts?.() ?? [],
      certificateExpires: () => expiryOf(serving.pair),
      certificateTrusted: () => serving.pair === undefined || trusts?.(serving.pair.cert) !== false,
      controllerStats: options.controllerStats,
      version: options.version,
    });
    const opening = openOps({
      health: heartbeat.health,
      bind,
      port: options.opsPort ?? OPS_PORT,
      metrics: async () => (await creatingMetrics).text(),
      log,
      heartbeatTimeoutMs: options.heartbeatTimeoutMs,
      decisions: recorded === undefined ? undefined : (after) => recorded.after(after),
    });
    stops.push(
      () => creatingMetrics.then((metrics) => metrics.stop(), ignore),
      () => opening.then((ops) => ops.stop(), ignore),
    );
    const [certificate, metrics, ops] = await Promise.all([
      certificateFor(options, bind),
      creatingMetrics,
      opening,
    ]);
    serving.pair = certificate;
    const tracing = await tracingFor(options, log);
    if (tracing !== undefined) stops.push(tracing.stop);
    const webhook = await HttpsServer.open({
      bind,
      port: options.port ?? WEBHOOK_PORT,
      pair: certificate,
      clients: options.clients,
      aggregated: aggregated && new AggregatedServing({ source, log, now, ...aggregated }),
      limits,
      handle: new ReviewHandler({ source, log, now, acceptsToken: options.acceptsToken }).handle,
      afterResponse: afterResponse({
        log,
        count: metrics.count,
        effects: options.effects,
        decided: recorded === undefined ? undefined : (evaluation) => recorded.add(evaluation),
      }),
      observe: (phase, status, seconds) => {
        metrics.observe(phase, status, seconds);
        if (status === CLIENT_CLOSED_REQUEST) options.callFailed?.();
      },
      connectionClosed: (limit) => {
        metrics.connectionClosed(limit);
        options.callFailed?.();
      },
      tracing,
      log,
    });
    if (options.certificate !== undefined) {
      const use = (next: KeyPair) => {
        webhook.usePair(next);
        serving.pair = next;
      };
      if ("follow" in options.certificate) {
        stops.push(options.certificate.follow(use).stop);
        // The pair may have been renewed between its read and the subscription.
        if (options.certificate.current !== certificate) use(options.certificate.current);
      } else stops.push(watchKeyPair({ files: options.certificate, current: certificate, use, log }).stop);
    }
    const { health } = heartbeat;
    health.set("listening", true);
    const shutdown = new Shutdown({ webhook, health, finishMs: limits.finishMs, stops });
    return {
      webhookAddress: webhook.address,
      opsAddress: ops.address,
      ca: "ca" in certificate ? certificate.ca : undefined,
      count: metrics.count,
      drain: ({ serveOnMs } = {}) => shutdown.drain(serveOnMs),
      close: () => shutdown.close(),
    };
  } catch (error) {
    await Promise.all(stops.map((stop) => stop()));
    throw error;
  }
}

/** OpenTelemetry is loaded only here, and only if tracing is on. */
async function tracingFor(
  { tracing, version, instance }: AdmissionOptions,
  log: Log,
): Promise<ReviewTracer | undefined> {
  if (tracing === undefined) return undefined;
  const { openTracing } = await import("./observe/tracing/open-tracing.ts");
  return openTracing({ ...tracing, version, instance, log });
}

/** The start reported the error already. */
function ignore(): void {}

function certificateFor(options: AdmissionOptions, bind: string): Promise<KeyPair | OwnCertificate> {
  const { certificate } = options;
  if (certificate !== undefined) {
    return "follow" in certificate ? Promise.resolve(certificate.current) : readKeyPair(certificate);
  }
  return makeCertificate(namesFor(bind, options.names));
}

/** Seconds since 1970. */
function expiryOf(pair: KeyPair | undefined): number {
  return pair === undefined ? 0 : Date.parse(new X509Certificate(pair.cert).validTo) / 1_000;
}
