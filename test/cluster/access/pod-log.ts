import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const PODS = "pods";

/** The folder of a pod that runs for real. The path contains the uid: a StatefulSet's pod returns under its old name. */
export function podFolder(folder: string, namespace: string, name: string, uid: string): string {
  return join(folder, PODS, `${namespace}_${name}_${uid}`);
}

/** The output of the containers of all pods of this name, oldest pod first. */
export function readPodLog(folder: string, namespace: string, name: string): string {
  const root = join(folder, PODS);
  let names: readonly string[];
  try {
    names = readdirSync(root).filter((entry) => entry.startsWith(`${namespace}_${name}_`));
  } catch {
    return "";
  }
  return names
    .map((entry) => join(root, entry))
    .sort((one, other) => statSync(one).birthtimeMs - statSync(other).birthtimeMs)
    .flatMap((pod) =>
      readdirSync(pod)
        .filter((file) => file.endsWith(".log"))
        .map((file) => readFileSync(join(pod, file), "utf8")),
    )
    .join("");
}
