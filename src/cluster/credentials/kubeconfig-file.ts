import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { isObject, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";

/** One context of a kubeconfig, with absolute paths. */
export interface KubeconfigEntry {
  /** `https://10.0.0.1:6443`, without a slash at its end. */
  readonly server: string;
  readonly namespace: string | undefined;
  readonly cluster: JsonObject;
  readonly user: JsonObject;
}

/** Fields that name a file, relative to the kubeconfig. */
const FILE_FIELDS = ["certificate-authority", "client-certificate", "client-key", "tokenFile"] as const;

/** No flag, variable or file names a cluster. */
export class NoKubeconfigError extends Error {
  constructor() {
    super("no kubeconfig found: set KUBECONFIG, or pass --kubeconfig");
  }
}

/** Reads a context from the given file, else from those in KUBECONFIG, else from `~/.kube/config`. */
export async function readKubeconfig(
  file: string | undefined,
  context: string | undefined,
): Promise<KubeconfigEntry> {
  const read = file === undefined ? await readDefault() : [await readOne(file)];
  // Merged as kubectl does: of several files the first with an entry wins.
  const named = (list: string, name: string | undefined) =>
    read.flatMap((config) => listAt(config, list)).find((entry) => stringAt(entry, "name") === name);
  const names = read.flatMap((config) =>
    listAt(config, "contexts").flatMap((entry) => stringAt(entry, "name") ?? []),
  );
  const current = context ?? read.map((config) => stringAt(config, "current-context")).find(Boolean);
  const chosen = innerOf(named("contexts", current), "context");
  if (chosen === undefined && context !== undefined)
    throw new Error(
      `context ${JSON.stringify(context)} not found in the kubeconfig; contexts: ${names.join(", ") || "none"}`,
    );
  const clusterName = stringAt(chosen, "cluster");
  const cluster = innerOf(named("clusters", clusterName), "cluster");
  const server = stringAt(cluster, "server");
  if (cluster === undefined || server === undefined)
    throw new Error(
      `the kubeconfig has no current context with a cluster; pass --context with one of: ${names.join(", ") || "none"}`,
    );
  const userName = stringAt(chosen, "user");
  const user = userName === undefined ? {} : innerOf(named("users", userName), "user");
  if (user === undefined)
    throw new Error(`context ${current}: user ${JSON.stringify(userName)} not found in the kubeconfig`);
  return {
    server: server.replace(/\/+$/, ""),
    namespace: stringAt(chosen, "namespace") || undefined,
    cluster,
    user,
  };
}

async function readDefault(): Promise<JsonObject[]> {
  const named = (process.env["KUBECONFIG"] ?? "").split(delimiter).filter((path) => path !== "");
  const files = named.length > 0 ? named : [join(homedir(), ".kube", "config")];
  const found = await Promise.all(files.map((file) => readOne(file).catch(ignoreMissing)));
  const read = found.filter((config) => config !== undefined);
  if (read.length === 0) throw new NoKubeconfigError();
  return read;
}

/** Files in KUBECONFIG may be missing, as for kubectl. */
function ignoreMissing(error: unknown): undefined {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
  throw error;
}

async function readOne(file: string): Promise<JsonObject> {
  const text = await readFile(file, "utf8");
  const config = await parsed(text, file);
  if (!isObject(config)) throw new Error(`${file} is not a kubeconfig: must be an object`);
  return absolute(config, dirname(resolve(file)));
}

/** JSON needs no library. */
async function parsed(text: string, file: string): Promise<unknown> {
  try {
    return JSON.parse(text);
  } catch {
    const { parse } = await import("yaml");
    try {
      return parse(text) as unknown;
    } catch (error) {
      const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
      throw new Error(`${file} is not a kubeconfig: ${why}`);
    }
  }
}

function absolute(config: JsonObject, folder: string): JsonObject {
  const resolvePath = (path: string) => (isAbsolute(path) ? path : join(folder, path));
  const within = (list: string, inner: string) =>
    listAt(config, list).map((entry) => {
      const value = innerOf(entry, inner);
      if (value === undefined || !isObject(entry)) return entry;
      const paths = FILE_FIELDS.flatMap((field) => {
        const path = stringAt(value, field);
        return path === undefined || path === "" ? [] : [[field, resolvePath(path)]];
      });
      return {
        ...entry,
        [inner]: { ...value, ...Object.fromEntries(paths), ...execWithPath(value, resolvePath) },
      };
    });
  return { ...config, clusters: within("clusters", "cluster"), users: within("users", "user") };
}

/** A command with a slash is a path; any other is found by PATH. */
function execWithPath(user: JsonObject, resolvePath: (path: string) => string): JsonObject {
  const exec = user["exec"];
  const command = stringAt(exec, "command");
  if (!isObject(exec) || command === undefined || !command.includes("/")) return {};
  return { exec: { ...exec, command: resolvePath(command) } };
}

function innerOf(entry: Json | undefined, inner: string): JsonObject | undefined {
  const value = isObject(entry) ? entry[inner] : undefined;
  return isObject(value) ? value : undefined;
}
