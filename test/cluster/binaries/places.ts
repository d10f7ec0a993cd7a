// Where binaries are stored.
import { accessSync, constants } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The cache is outside the repository, so that another clone does not build everything again. */
export function cacheFolder(env: Environment): string {
  if (env["USHER_CACHE"]) return env["USHER_CACHE"];
  if (env["XDG_CACHE_HOME"]) return join(env["XDG_CACHE_HOME"], "usher");
  return join(env["HOME"] ?? homedir(), ".cache", "usher");
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A prebuilt binary in kubebuilder's assets folder, which holds etcd, kube-apiserver and kubectl. */
export function readyMade(name: string, env: Environment): string | undefined {
  const folder = env["KUBEBUILDER_ASSETS"];
  if (!folder) return undefined;
  const path = join(folder, name);
  return isExecutable(path) ? path : undefined;
}

/** The Go command: on the PATH, or in its default install location. */
export function findGo(env: Environment): string | undefined {
  const folders = [...(env["PATH"] ?? "").split(delimiter), join(env["GOROOT"] ?? "/usr/local/go", "bin")];
  return folders
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, "go"))
    .find(isExecutable);
}
