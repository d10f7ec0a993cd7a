import type { Observed } from "../../core/evaluate/effects.ts";
import {
  decodeObservations,
  encodeObservations,
  isObservable,
  MOST_OBSERVATIONS,
  mergeObservations,
  OBSERVATIONS,
  type Observation,
} from "../../core/evaluate/observations.ts";
import { type JsonObject, stringAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { errorMessage, isNotFound, responseMessage } from "../client/api-response.ts";
import type { Client } from "../client/client.ts";
import { pathSegment } from "../client/discovery.ts";

/** As short as for tallies: an administrator looks right after an attempt. Costs two requests per replica with observations. */
const INTERVAL_MS = 10_000;

/** Each conflict means that another replica wrote; there are few replicas. */
const ATTEMPTS = 5;

interface ObservationWriterOptions {
  readonly client: Client;
  /** Usher's namespace. */
  readonly namespace: string;
  readonly log: Log;
  /** The owner of a ConfigMap that this replica creates, as an ownerReference. @default none */
  readonly owner?: JsonObject | undefined;
}

/**
 * Adds this replica's observations to the stored ones, one ConfigMap per module. All replicas write the same object,
 * conditional on its version, so that nothing is lost with a pod. Observations that could not be written are kept and
 * retried.
 */
export class ObservationWriter {
  readonly #options: ObservationWriterOptions;
  readonly #pending = new Map<string, Observation[]>();
  #writing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ObservationWriterOptions) {
    this.#options = options;
  }

  add(observed: readonly Observed[], now: number): void {
    for (const { module, fields } of observed) {
      if (!isObservable(fields)) continue;
      const pending = this.#pending.get(module) ?? [];
      pending.push({ fields, count: 1, first: now, last: now });
      // Merged when it has grown, so that one observation costs little.
      this.#pending.set(
        module,
        pending.length < 2 * MOST_OBSERVATIONS ? pending : mergeObservations(pending),
      );
    }
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.write(), INTERVAL_MS).unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
    await this.write();
  }

  /** One at a time, so that a replica never conflicts with itself. */
  write(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  async #write(): Promise<void> {
    for (const [module, observed] of [...this.#pending]) {
      this.#pending.delete(module);
      try {
        await this.#merge(module, observed);
      } catch (error) {
        this.#pending.set(module, mergeObservations(observed, this.#pending.get(module) ?? []));
        this.#options.log.warn(
          { module, error: errorMessage("observations", error) },
          "failed to write observations",
        );
      }
    }
  }

  async #merge(module: string, observed: readonly Observation[]): Promise<void> {
    const { client, namespace, owner } = this.#options;
    const name = OBSERVATIONS.name(module);
    const collection = `/api/v1/namespaces/${pathSegment("namespace", namespace)}/configmaps`;
    const path = `${collection}/${pathSegment("name", name)}`;
    for (let attempt = 1; ; attempt++) {
      const read = await client.request("GET", path);
      const exists = !isNotFound(read, name);
      if (exists && read.status !== 200) throw new Error(responseMessage(`get ${name}`, read));
      const stored = exists ? decodeObservations(stringAt(read.body, "data", OBSERVATIONS.entry) ?? "") : [];
      const text = encodeObservations(mergeObservations(stored, observed));
      const resourceVersion = stringAt(read.body, "metadata", "resourceVersion");
      const owned = exists || owner === undefined ? {} : { ownerReferences: [owner] };
      const body = configMap({ name, namespace, ...owned }, resourceVersion, text);
      const response = exists
        ? await client.request("PATCH", path, { body, contentType: "application/merge-patch+json" })
        : await client.request("POST", collection, { body });
      if (response.status < 300) return;
      if (response.status !== 409 || attempt >= ATTEMPTS)
        throw new Error(responseMessage(`write ${name}`, response));
    }
  }
}

function configMap(of: JsonObject, resourceVersion: string | undefined, text: string): JsonObject {
  const metadata = { ...of, labels: { [OBSERVATIONS.label]: "true" } };
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: resourceVersion === undefined ? metadata : { ...metadata, resourceVersion },
    data: { [OBSERVATIONS.entry]: text },
  };
}
