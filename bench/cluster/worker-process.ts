// Load on a cluster comes from a separate process: the benchmark's own runs the harness's proxy to usher, and each
// would wait for the other. A script for such a process calls `serveWorker`; the benchmark starts it with `startWorker`
// and sends it one request at a time.
import { fork } from "node:child_process";
import { once } from "node:events";
import { ClusterAccess, type ClusterInfo } from "../../test/cluster/access/access.ts";

type Reply<T> = { readonly result: T } | { readonly failed: string };

export interface Worker<Asked, Result> extends AsyncDisposable {
  readonly pid: number;
  readonly ask: (asked: Asked) => Promise<Result>;
}

const USHERS_FLAGS = ["--max-semi-space-size=8", "--expose-gc"];

export function startWorker<Asked extends object, Result>(
  script: string,
  cluster: ClusterAccess,
): Worker<Asked, Result> {
  // Without the benchmark's own flags, such as a profiler's, but with those of bin/usher: some workers are usher.
  const child = fork(script, { execArgv: USHERS_FLAGS, serialization: "json" });
  // It ends with the channel, but not in the middle of something.
  process.once("exit", () => child.kill("SIGKILL"));
  const ended = once(child, "exit").then(([code, signal]) => {
    throw new Error(`${script} ended with ${signal ?? `code ${code}`}`);
  });
  // Reported to the caller of `ask` alone.
  ended.catch(() => undefined);
  const ask = async (asked: Asked): Promise<Result> => {
    child.send({ info: cluster.info, asked });
    const [reply] = (await Promise.race([once(child, "message"), ended])) as [Reply<Result>];
    if ("failed" in reply) throw new Error(reply.failed);
    return reply.result;
  };
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.disconnect();
    await once(child, "exit");
  };
  return { pid: child.pid ?? 0, ask, [Symbol.asyncDispose]: stop };
}

/** Answers the benchmark's requests until it ends. */
export function serveWorker<Asked extends object, Result>(
  work: (cluster: ClusterAccess, asked: Asked) => Promise<Result>,
): void {
  let cluster: ClusterAccess | undefined;
  const answer = async ({ info, asked }: { info: ClusterInfo; asked: Asked }): Promise<Reply<Result>> => {
    try {
      cluster ??= new ClusterAccess(info);
      return { result: await work(cluster, asked) };
    } catch (error) {
      return { failed: error instanceof Error ? error.message : String(error) };
    }
  };
  process.on("message", (message: { info: ClusterInfo; asked: Asked }) => {
    void answer(message).then((reply) => process.send?.(reply));
  });
  process.once("disconnect", () => process.exit());
}
