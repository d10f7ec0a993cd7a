import { type ObjectDrift, scanObject, scanPage } from "../../../core/drift/drift-scan.ts";
import type { Assembly } from "../../../core/evaluate/assembly.ts";
import { type Fact, type Facts, failureOf, type Need, needKey } from "../../../core/evaluate/need.ts";
import { isObject, type JsonObject } from "../../../core/json.ts";
import { nameOf, namespaceOf } from "../../../core/kubernetes/object.ts";
import type { WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Module } from "../../../core/module/module.ts";
import { stepsDone } from "../merge/work-budget.ts";
import { DriftCounts } from "./drift-counts.ts";

/** Reading 50 objects holds up the loop for some 7 ms, and judging them for as long again; admissions wait no longer than that. */
const PAGE = 50;

/**
 * So much is done in one go, in the steps of `Effort`: some ten milliseconds, and a page of ordinary workloads does not take a tenth of it.
 * One that many policies want may take as much by itself.
 */
const STEPS = 65_536;

/** An API server that is busy now answers the next time; what it does not serve it never will. */
const ATTEMPTS = 3;

/** One object that a walk came by. */
export interface Met {
  readonly workload: WorkloadKind;
  readonly object: JsonObject;
  readonly surveyed: ObjectDrift;
}

/** One walk through all workloads of a cluster, a page at a time, so that nothing has to be held in memory or read at once. */
export class DriftWalk {
  readonly book = new DriftCounts();
  readonly #module: Module;
  readonly #assembly: Assembly;
  readonly #kinds: readonly WorkloadKind[];
  #kind = 0;
  #token: string | undefined;
  #failures = 0;
  #waiting: readonly JsonObject[] = [];
  /** Where the page behind those begins. */
  #next: string | undefined;

  constructor(module: Module, assembly: Assembly) {
    this.#module = module;
    this.#assembly = assembly;
    this.#kinds = assembly.installation.workloads.all;
  }

  /** The page to read next; none when the walk is over. */
  get page(): Need | undefined {
    const workload = this.#kinds[this.#kind];
    if (workload === undefined) return undefined;
    const from = this.#token === undefined ? {} : { continue: this.#token };
    return scanPage(this.#module, workload, PAGE, from);
  }

  /** True while there are objects of the last page that were not judged yet. */
  get waits(): boolean {
    return this.#waiting.length > 0;
  }

  /** Takes a page in, and goes on to the next once its objects are judged. */
  take(fact: Fact): void {
    if (!("found" in fact)) {
      const why = failureOf(fact) ?? "not found";
      if (++this.#failures < ATTEMPTS) return;
      this.book.noteUnread(why);
      this.#advance(undefined);
      return;
    }
    this.#waiting = Array.isArray(fact.found) ? fact.found.filter(isObject) : [];
    this.#next = fact.next;
    if (this.#waiting.length === 0) this.#advance(this.#next);
  }

  /** Judges as many of those that wait as one go allows; or says what is needed to judge them. */
  judge(facts: Facts, now: number): readonly Met[] | { readonly needs: readonly Need[] } {
    const workload = this.#kinds[this.#kind];
    if (workload === undefined || !this.waits) return [];
    const end = stepsDone() + STEPS;
    const met: Met[] = [];
    const needs = new Map<string, Need>();
    let judged = 0;
    for (const object of this.#waiting) {
      const surveyed = scanObject(this.#module, object, workload, this.#assembly, { facts, now });
      judged++;
      if ("needs" in surveyed) for (const need of surveyed.needs) needs.set(needKey(need), need);
      else if (surveyed.carried.length > 0) met.push({ workload, object, surveyed });
      if (stepsDone() > end) break;
    }
    if (needs.size > 0) return { needs: [...needs.values()] };
    for (const { object, surveyed } of met) {
      this.book.note(`${workload.kind} ${namespaceOf(object)}/${nameOf(object)}`, surveyed.carried);
    }
    this.#waiting = this.#waiting.slice(judged);
    if (this.#waiting.length === 0) this.#advance(this.#next);
    return met;
  }

  #advance(token: string | undefined): void {
    this.#failures = 0;
    this.#token = token;
    if (token === undefined) this.#kind++;
  }
}
