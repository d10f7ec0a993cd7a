import { type Fact, type Facts, failureOf, type Need, needKey } from "../../../core/decision/need.ts";
import { type ObjectDrift, scannedKinds, scanObject, scanPage } from "../../../core/drift/drift-scan.ts";
import { at, isObject, type JsonObject } from "../../../core/json.ts";
import { nameOf, namespaceOf } from "../../../core/kubernetes/object.ts";
import { specPath, type WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Assembly } from "../../../core/module/assembly.ts";
import type { Module } from "../../../core/module/module.ts";
import { valuesIn } from "../criteria/work-limit.ts";
import { DriftCounts } from "./drift-counts.ts";

/** Reading 50 objects blocks the event loop for some 7 ms, and comparing them for as long again; admissions wait no longer than that. */
const PAGE = 50;

/**
 * Values of pod specs times policies, after which a step of the scan ends. A page of ordinary workloads has fewer; one workload that many
 * policies select may have as many.
 */
const MOST_COMPARED = 16_384;

/** A busy API server answers the next time; a resource that it does not serve never appears. */
const ATTEMPTS = 3;

/** One scanned workload that policies apply to. */
export interface ScannedObject {
  readonly workload: WorkloadKind;
  readonly object: JsonObject;
  readonly drift: ObjectDrift;
}

/** One drift scan of all workloads of a cluster, a page at a time, so that memory and the time of one step are bounded. */
export class DriftWalk {
  readonly counts = new DriftCounts();
  readonly #module: Module;
  readonly #assembly: Assembly;
  readonly #kinds: readonly WorkloadKind[];
  #kind = 0;
  #token: string | undefined;
  #failures = 0;
  #waiting: readonly JsonObject[] = [];
  /** The start of the next page. */
  #next: string | undefined;

  constructor(module: Module, assembly: Assembly) {
    this.#module = module;
    this.#assembly = assembly;
    this.#kinds = scannedKinds(module, assembly.installation);
  }

  /** The page to read next; none at the end. */
  get page(): Need | undefined {
    const workload = this.#kinds[this.#kind];
    if (workload === undefined) return undefined;
    const from = this.#token === undefined ? {} : { continue: this.#token };
    return scanPage(this.#module, workload, PAGE, from);
  }

  /** Whether objects of the last page are still to be compared. */
  get waits(): boolean {
    return this.#waiting.length > 0;
  }

  /** Reads a page, and moves on to the next once its objects are compared. */
  take(fact: Fact): void {
    if (!("found" in fact)) {
      const why = failureOf(fact) ?? "not found";
      if (++this.#failures < ATTEMPTS) return;
      this.counts.noteUnread(why);
      this.#advance(undefined);
      return;
    }
    this.#waiting = Array.isArray(fact.found) ? fact.found.filter(isObject) : [];
    this.#next = fact.next;
    if (this.#waiting.length === 0) this.#advance(this.#next);
  }

  /** Compares as many waiting objects as one step allows; or returns its needs. */
  judge(facts: Facts, now: number): readonly ScannedObject[] | { readonly needs: readonly Need[] } {
    const workload = this.#kinds[this.#kind];
    if (workload === undefined || !this.waits) return [];
    const scanned: ScannedObject[] = [];
    const needs = new Map<string, Need>();
    let [judged, compared] = [0, 0];
    for (const object of this.#waiting) {
      const drift = scanObject(this.#module, object, workload, this.#assembly, { facts, now });
      judged++;
      if ("needs" in drift) for (const need of drift.needs) needs.set(needKey(need), need);
      else {
        if (drift.carried.length > 0) scanned.push({ workload, object, drift });
        compared += valuesIn(at(object, ...specPath(workload))) * (1 + drift.carried.length);
      }
      if (compared > MOST_COMPARED) break;
    }
    if (needs.size > 0) return { needs: [...needs.values()] };
    for (const { object, drift } of scanned) {
      this.counts.note(`${workload.kind} ${namespaceOf(object)}/${nameOf(object)}`, drift.carried);
    }
    this.#waiting = this.#waiting.slice(judged);
    if (this.#waiting.length === 0) this.#advance(this.#next);
    return scanned;
  }

  #advance(token: string | undefined): void {
    this.#failures = 0;
    this.#token = token;
    if (token === undefined) this.#kind++;
  }
}
