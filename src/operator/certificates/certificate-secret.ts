import { randomUUID } from "node:crypto";
import { isNotFound, StatusError } from "../../cluster/client/api-response.ts";
import type { Client } from "../../cluster/client/client.ts";
import { FIELD_MANAGER } from "../../cluster/client/client.ts";
import { pathSegment } from "../../cluster/client/discovery.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { OWN_LABELS, OWN_NAMES } from "../../core/registration/names.ts";
import { type CertificateRecord, dataOf, EMPTY_RECORD, recordOf } from "./certificate-record.ts";
import { ServerClock } from "./server-clock.ts";

/** The last read Secret, and its content. */
interface SecretState {
  readonly record: CertificateRecord;
  /** `undefined` if the Secret does not exist. */
  readonly object: JsonObject | undefined;
}

/**
 * The one Secret that all replicas share. Writes are conditional on the version that was read, so two replicas never
 * overwrite each other.
 */
export class CertificateSecret {
  readonly path: string;
  readonly clock: ServerClock;
  readonly #client: Client;
  readonly #namespace: string;
  readonly #owner: JsonObject | undefined;
  #state: SecretState = { record: EMPTY_RECORD, object: undefined };
  /** The number of the last request, and of the one whose response is in the state. */
  #requested = 0;
  #applied = 0;

  /** `owner`: an ownerReference, with which the private key is deleted. */
  constructor(client: Client, namespace: string, now: () => number, owner?: JsonObject) {
    this.#client = client;
    this.#namespace = namespace;
    this.#owner = owner;
    this.clock = new ServerClock(now);
    this.path = `/api/v1/namespaces/${pathSegment("namespace", namespace)}/secrets/${OWN_NAMES.certificates}`;
  }

  get state(): SecretState {
    return this.#state;
  }

  get resourceVersion(): string | undefined {
    return stringAt(this.#state.object, "metadata", "resourceVersion");
  }

  async read(): Promise<void> {
    this.#requested += 1;
    const turn = this.#requested;
    const answer = await this.#client.request("GET", this.path);
    this.clock.observe(answer.headers);
    const absent = isNotFound(answer, OWN_NAMES.certificates);
    if (!absent && answer.status !== 200) throw new StatusError("reading the certificate", answer);
    this.#apply(absent ? undefined : answer.body, turn);
  }

  /** False if the Secret has changed since `seen`. */
  async write(record: CertificateRecord, seen: JsonObject | undefined): Promise<boolean> {
    const data = dataOf(record);
    const answer =
      seen === undefined
        ? // A field manager per attempt: if another replica was faster it owns these fields, and this is a conflict.
          await this.#client.request("PATCH", `${this.path}?fieldManager=${FIELD_MANAGER}-${randomUUID()}`, {
            contentType: "application/apply-patch+yaml",
            body: {
              apiVersion: "v1",
              kind: "Secret",
              metadata: {
                name: OWN_NAMES.certificates,
                namespace: this.#namespace,
                labels: OWN_LABELS,
                ...(this.#owner === undefined ? {} : { ownerReferences: [this.#owner] }),
              },
              type: "kubernetes.io/tls",
              data,
            },
          })
        : await this.#client.request("PUT", `${this.path}?fieldManager=${FIELD_MANAGER}`, {
            body: { ...seen, data },
          });
    if (answer.status === 409 || isNotFound(answer, OWN_NAMES.certificates)) return false;
    if (answer.status >= 300) throw new StatusError("writing the certificate", answer);
    // A read that is still in flight may have been answered before this.
    this.#requested += 1;
    this.#apply(answer.body, this.#requested);
    return true;
  }

  /** Ignores a response that a later request has overtaken. */
  #apply(secret: unknown, turn: number): void {
    if (turn < this.#applied) return;
    this.#applied = turn;
    const object = isObject(secret) ? secret : undefined;
    this.#state = { record: recordOf(object), object };
  }
}
