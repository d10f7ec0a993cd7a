import { spawn } from "node:child_process";

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs kubectl to its end. Never throws on a refusal, because tests often expect one. */
export function runKubectl(
  binary: string,
  args: readonly string[],
  kubeconfig: string,
  home: string,
  input?: string,
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    // Its own home, so that kubectl reads neither the user's settings nor a cache of another cluster's resources.
    const env = { PATH: process.env["PATH"], HOME: home, KUBECONFIG: kubeconfig };
    const child = spawn(binary, args, { env, stdio: ["pipe", "pipe", "pipe"] });
    const result = { stdout: "", stderr: "" };
    for (const stream of ["stdout", "stderr"] as const) {
      child[stream].setEncoding("utf8").on("data", (text: string) => {
        result[stream] += text;
      });
    }
    child.once("error", reject);
    child.once("close", (code) => resolve({ code: code ?? -1, ...result }));
    // kubectl may exit before it has read everything.
    child.stdin.on("error", () => undefined);
    child.stdin.end(input ?? "");
  });
}
