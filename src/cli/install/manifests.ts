import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { PATH_TOKEN } from "../../admission/review/routes.ts";
import { managesWebhooks } from "../../core/installation/installation.ts";
import type { JsonObject } from "../../core/json.ts";
import { registeredWebhooks } from "../../core/registration/index.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { operatorObjects } from "../../core/registration/operator.ts";
import { SERVICE_PORT } from "../../core/registration/workload.ts";
import { reasonOf } from "../../files/reader/bytes.ts";
import { makeToken } from "../../operator/certificates/path-tokens.ts";
import { isWebhookConfiguration } from "../../operator/install/install-plan.ts";
import { CallError } from "../exit.ts";
import type { Io } from "../io.ts";
import { operatorOf } from "../operator/operator.ts";
import { type Terminal, terminal } from "../output/terminal.ts";
import { yamlDocuments } from "../output/yaml.ts";
import { openSource } from "../source/source.ts";
import { version } from "../version.ts";
import { DEFAULT_IMAGE, type InstallationOptions, installationObjects } from "./installation.ts";

export interface ManifestsOptions extends InstallationOptions {
  readonly webhooks?: boolean;
  readonly operator?: string;
  readonly source?: readonly string[];
  readonly caBundle?: string;
  readonly pathToken?: string;
  readonly output: "yaml" | "json";
  readonly quiet?: boolean;
}

/** Prints every object of an installation; objects that usher writes at run time are not included, and printed only on request. */
export async function manifests(options: ManifestsOptions, io: Io): Promise<void> {
  const screen = terminal(io, options);
  const { source, caBundle, pathToken } = options;
  if (options.webhooks !== true && (source ?? caBundle ?? pathToken) !== undefined)
    throw new CallError("--source, --ca-bundle and --path-token require --webhooks");
  if (pathToken !== undefined && !PATH_TOKEN.test(pathToken))
    throw new CallError("--path-token must be 40 hexadecimal digits, in lower case");
  const printed = await printedBy(options, io, screen);
  screen.out(
    options.output === "json"
      ? JSON.stringify({ apiVersion: "v1", kind: "List", items: printed }, null, 2)
      : yamlDocuments(printed),
  );
}

async function printedBy(
  options: ManifestsOptions,
  io: Io,
  screen: Terminal,
): Promise<readonly JsonObject[]> {
  if (options.operator !== undefined) return ofOperator(options, options.operator, io);
  return options.webhooks === true ? webhooks(options, io, screen) : others(options, io);
}

/** The operator has its own names and configuration: only images can be chosen. */
async function ofOperator(options: ManifestsOptions, name: string, io: Io): Promise<readonly JsonObject[]> {
  const { webhooks, replicas, namespace, config, featureGates, podLabel } = options;
  if ([webhooks, replicas, namespace, config, featureGates, podLabel].some((flag) => flag !== undefined))
    throw new CallError("--operator takes --image alone");
  const { module, operator } = await operatorOf(name, io);
  const { image = DEFAULT_IMAGE } = options;
  return operatorObjects(module, operator, { image, version: version() });
}

async function others(options: ManifestsOptions, io: Io): Promise<readonly JsonObject[]> {
  const { objects } = await installationObjects(options, io);
  return objects.filter((object) => !isWebhookConfiguration(object));
}

/** Webhooks follow the policies: those of a directory, if given. */
async function webhooks(options: ManifestsOptions, io: Io, screen: Terminal): Promise<readonly JsonObject[]> {
  const { caBundle: file, source: directory } = options;
  const authority = file === undefined ? undefined : await authorityFrom(file, "--ca-bundle");
  const { assembly } = await installationObjects(options, io);
  if (directory !== undefined) await openSource({ source: directory, watch: false }, assembly, screen);
  const { namespace } = assembly.installation;
  const isManaged = managesWebhooks(assembly.installation);
  const pathToken = options.pathToken ?? (isManaged ? undefined : makeToken());
  const { objects, notes } = registeredWebhooks(assembly, {
    endpoint: { service: { name: OWN_NAMES.service, namespace, port: SERVICE_PORT } },
    ...(authority === undefined ? {} : { caBundle: Buffer.from(authority).toString("base64") }),
    ...(pathToken === undefined ? {} : { pathToken }),
    version: version(),
  });
  for (const note of notes) screen.note(note);
  if (isManaged)
    screen.note("usher writes these itself: apply them only with manageWebhooks: false in the configuration");
  else if (options.pathToken === undefined)
    screen.note("their paths have a new token, by which usher knows API servers; --path-token keeps one");
  if (directory === undefined) screen.note("without --source they are those of a cluster without policies");
  if (authority === undefined) screen.note("without --ca-bundle they have no CA bundle");
  if (assembly.installation.kubernetesVersion === undefined)
    screen.note(
      "without kubernetesVersion in the configuration they are those for an API server that is not known, and some stay open",
    );
  return objects;
}

/** A CA from a file, validated early: an invalid one would only show as failed connections. */
export async function authorityFrom(file: string, flag: string): Promise<string> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new CallError(`${flag} ${file}: ${reasonOf(error)}`);
  });
  try {
    new X509Certificate(text);
  } catch {
    throw new CallError(`${flag} ${file}: not a PEM certificate`);
  }
  return text;
}
