import { execFile } from "node:child_process";
import { CallError } from "../exit.ts";

/** Programs that build a kustomization, in the order in which they are tried. */
const BUILDERS = [
  ["kubectl", "kustomize"],
  ["kustomize", "build"],
] as const;

/** A build is as long as its manifests. */
const MAX_BYTES = 64 * 1024 * 1024;

/** The manifests of a kustomization, built by kubectl or kustomize. Usher itself contains neither. */
export async function kustomized(directory: string): Promise<string> {
  for (const [program, verb] of BUILDERS) {
    const built = await run(program, [verb, directory]);
    if ("text" in built) return built.text;
    if (built.absent) continue;
    throw new CallError(`-k ${directory}: ${program} ${verb} failed: ${built.reason}`);
  }
  throw new CallError(
    `-k ${directory}: needs kubectl or kustomize in PATH, and neither is there; install one, or give a file with the manifests that it builds`,
  );
}

type Built = { readonly text: string } | { readonly absent: boolean; readonly reason: string };

function run(program: string, args: readonly string[]): Promise<Built> {
  return new Promise((resolve) => {
    execFile(program, args, { encoding: "utf8", maxBuffer: MAX_BYTES }, (error, stdout, stderr) => {
      if (error === null) resolve({ text: stdout });
      else
        resolve({
          absent: (error as NodeJS.ErrnoException).code === "ENOENT",
          reason: stderr.trim() || error.message,
        });
    });
  });
}
