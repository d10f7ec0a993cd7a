import type { Fact, Need } from "../../core/decision/need.ts";
import { failureOf } from "../../core/decision/need.ts";
import { resourceName } from "../../core/decision/request.ts";
import type { Source } from "../../core/evaluate/source.ts";
import { SCHEDULING_LISTS } from "../../core/foresight/node-reach.ts";
import { World } from "../../core/foresight/world.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { checkDnsLabel } from "../../core/kubernetes/names.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import { objectKey } from "../../core/view/view.ts";
import { Resources } from "../../files/source/resources.ts";
import { CallError } from "../exit.ts";
import { type ProblemData, sourceProblemData } from "../input/problems.ts";
import type { Io } from "../io.ts";
import type { Terminal } from "../output/terminal.ts";
import { reviewDeadline } from "../review/deadline.ts";
import { isLive, type OpenOptions, openRead } from "../source/open.ts";
import { assembleFor } from "../source/source.ts";

/** Objects read at once: bounds memory, and keeps progress moving on a terminal. */
const PAGE = 500;

export const PRIORITY_CLASSES = "priorityclasses.scheduling.k8s.io";

export interface WorldOptions extends OpenOptions {
  readonly namespace?: string;
  readonly quiet?: boolean;
}

export interface OpenedWorld {
  /** Before any edit, and before controllers have made their changes. */
  readonly world: World;
  readonly source: Source;
  readonly resources: Resources;
  readonly live: boolean;
  /** Resources that could not be read whole, with the reason: the answer is partial. */
  readonly partial: readonly string[];
  /** Something of the files could not be used. */
  readonly faulty: boolean;
  readonly problems: readonly ProblemData[];
  readonly stop: () => Promise<void>;
}

interface OpenWorldOptions {
  readonly scheduling: boolean;
  /** Whether workloads and nodes are read. @default true */
  readonly objects?: boolean;
  /** Modules judge as the webhook does, and not for other components as well. */
  readonly asWebhook?: true;
}

/** Reads a cluster, or files in its place: policies, every workload, nodes, and with `scheduling` all that the scheduler looks at. */
export async function openWorld(
  options: WorldOptions,
  io: Io,
  screen: Terminal,
  { scheduling, objects = true, asWebhook }: OpenWorldOptions,
): Promise<OpenedWorld> {
  const wrong = options.namespace === undefined ? undefined : checkDnsLabel(options.namespace);
  if (wrong !== undefined) throw new CallError(`--namespace: ${wrong}`);
  const live = isLive(options);
  const assembly = await assembleFor(options, io, {
    ...(asWebhook === true ? {} : { foresight: true }),
    live: live ? { note: screen.note, forbidden: "ask" } : undefined,
  });
  const opened = await openRead(options, assembly, screen, { leaderReads: live && objects });
  try {
    const { source } = opened;
    const fetch = (needs: readonly Need[]) => source.fetch(needs, reviewDeadline());
    const { workloads } = assembly.installation;
    const kinds = workloads.all.map(resourceName);
    const always = [...kinds, "nodes", "namespaces"];
    const wanted = [
      ...new Set([...always, PRIORITY_CLASSES, ...(scheduling ? Object.values(SCHEDULING_LISTS) : [])]),
    ];
    const tables = new Map<string, Map<string, JsonObject>>();
    const partial: string[] = [];
    for (const [done, resource] of (objects ? wanted : [PRIORITY_CLASSES]).entries()) {
      screen.progress("reading", "resources", done, wanted.length);
      const { objects: found, failure } = await readAll(resource, fetch);
      if (failure !== undefined) {
        // Without a list of volumes or classes the scheduler's filters that need it answer "unknown".
        if (always.includes(resource)) partial.push(failure);
        continue;
      }
      // Files without volumes say nothing about volumes; files are the cluster's workloads and nodes, however few.
      if (live || found.length > 0 || always.includes(resource))
        tables.set(resource, new Map(found.map((one) => [objectKey(namespaceOf(one), nameOf(one)), one])));
    }
    screen.endProgress();
    return {
      world: new World(source.assembly, fetch, tables),
      source,
      resources: new Resources(source.assembly.modules, workloads.all),
      live,
      partial,
      faulty: opened.faulty,
      problems: sourceProblemData(opened.problems, options.strict === true),
      stop: opened.stop,
    };
  } catch (error) {
    await opened.stop();
    throw error;
  }
}

/** A whole list, page by page. A kind that is not served has no objects. */
export async function readAll(
  resource: string,
  fetch: (needs: readonly Need[]) => Promise<readonly Fact[]>,
  where: { readonly namespace?: string; readonly fieldSelector?: string; readonly managers?: boolean } = {},
): Promise<{ readonly objects: readonly JsonObject[]; readonly failure?: string }> {
  const objects: JsonObject[] = [];
  for (let token: string | undefined; ; ) {
    const from = token === undefined ? {} : { continue: token };
    const [fact] = await fetch([{ list: { resource, ...where, ...from }, limit: PAGE, share: 1 }]);
    if (fact === undefined) return { objects, failure: `${resource}: not read` };
    if (!("found" in fact)) {
      if ("absent" in fact) return { objects };
      const failure = failureOf(fact) ?? "not read";
      return { objects, failure: failure.includes(resource) ? failure : `${resource}: ${failure}` };
    }
    if (Array.isArray(fact.found)) objects.push(...fact.found.filter(isObject));
    token = fact.next;
    if (token !== undefined) continue;
    return fact.complete
      ? { objects }
      : { objects, failure: `${resource}: list is incomplete, timed out or too large for memory` };
  }
}
