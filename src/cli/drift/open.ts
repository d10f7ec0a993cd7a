import { createResources } from "../../cluster/client/discovery.ts";
import { watchedResources } from "../../cluster/informers/watched-resources.ts";
import { checkDnsLabel } from "../../core/kubernetes/names.ts";
import type { Module } from "../../core/module/module.ts";
import type { Source } from "../../core/view/source.ts";
import { CallError, EXIT } from "../exit.ts";
import type { Terminal } from "../output/terminal.ts";
import { apiServer } from "../source/api-server.ts";
import { type Opened, openFiles, openLive } from "../source/open.ts";

/** What both commands take. */
export interface SurveyingOptions {
  readonly source?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace?: string;
  readonly allNamespaces?: boolean;
  readonly output: "table" | "json" | "yaml";
  readonly quiet?: boolean;
  readonly config?: string;
  readonly featureGates?: string;
}

export interface OpenSurvey extends Opened {
  readonly module: Module;
}

/** Where the workloads are: all namespaces where it is `undefined`. */
export function namespaceFrom(options: SurveyingOptions): string | undefined {
  const { namespace, allNamespaces } = options;
  if (allNamespaces === true) {
    if (namespace !== undefined)
      throw new CallError("-n names one namespace, -A means all: choose one of them");
    return undefined;
  }
  const wrong = namespace === undefined ? undefined : checkDnsLabel(namespace);
  if (wrong !== undefined) throw new CallError(`--namespace: ${wrong}`);
  return namespace ?? "default";
}

/** Opens a cluster of files or a live one, to look at its workloads. */
export async function openSurvey(
  name: string,
  options: SurveyingOptions,
  screen: Terminal,
): Promise<OpenSurvey> {
  const opened =
    options.source !== undefined
      ? await openFiles(options, screen)
      : await openLive(options, { first: ({ modules }) => mayRead(options, modules) });
  return { ...opened, module: moduleOf(opened.source, name) };
}

/**
 * Looks whether what usher needs can be read at all. A live view waits for what it can't read, as a replica must; a person would wait
 * without a word.
 */
async function mayRead(options: SurveyingOptions, modules: readonly Module[]): Promise<void> {
  const client = await apiServer(options);
  try {
    const resources = createResources(client, modules);
    for (const { resource, required, leaderOnly } of watchedResources(modules)) {
      if (!required || leaderOnly) continue;
      const answer = await client.request("GET", `${await resources.pathOf(resource)}?limit=1`);
      if (answer.status === 403)
        throw new CallError(
          `you may not list ${resource}, and without them nobody can say what policies want; ask an administrator for it, or name workloads: reapply KIND/NAME needs no more than the right to change them`,
          EXIT.failed,
        );
      if (answer.status === 404)
        throw new CallError(`${client.server} has no ${resource}: is usher installed there?`, EXIT.failed);
      if (answer.status >= 400)
        throw new CallError(`${resource}: the API server answered ${answer.status}`, EXIT.failed);
    }
  } catch (error) {
    if (error instanceof CallError) throw error;
    throw new CallError(error instanceof Error ? error.message : String(error), EXIT.failed);
  } finally {
    client.close();
  }
}

function moduleOf({ assembly }: Source, name: string): Module {
  const found = assembly.modules.find((module) => module.name === name);
  if (found === undefined) throw new Error(`there is no module ${name}`);
  return found;
}
