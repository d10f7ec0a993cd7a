import { Worker } from "node:worker_threads";
import { Unreadable } from "./bytes.ts";
import type { Located, ReadDocument } from "./read-documents.ts";
import type { Reader, ReadFile } from "./reader.ts";
import type { WorkerRequest, WorkerResponse } from "./worker-protocol.ts";
import { workerUrl } from "./worker-url.ts";

/** Enough for the tree of the largest document that there can be; a worker that wants more ends, and usher does not. */
const WORKER_HEAP_MB = 1024;

/** Trees die young, so a small nursery is enough; what a large one leaves behind in the process was measured at 30 MB. */
const WORKER_YOUNG_MB = 8;

interface Waiting {
  readonly take: (answer: WorkerResponse) => void;
  readonly fail: (error: Error) => void;
}

/** Reads in a thread of its own, which is started with the first question. */
export function workerReader(): Reader {
  const waiting = new Map<number, Waiting>();
  let worker: Worker | undefined;
  let count = 0;

  const failAll = (reason: string): void => {
    worker = undefined;
    for (const { fail } of waiting.values()) fail(new Unreadable(reason));
    waiting.clear();
  };

  const start = (): Worker => {
    const started = new Worker(workerUrl(), {
      resourceLimits: { maxOldGenerationSizeMb: WORKER_HEAP_MB, maxYoungGenerationSizeMb: WORKER_YOUNG_MB },
    });
    started.on("message", (answer: WorkerResponse) => waiting.get(answer.id)?.take(answer));
    started.on("error", (error) => failAll(`can't be read: the reader failed (${error.message})`));
    started.on("exit", () => failAll("can't be read: the reader exited"));
    return started;
  };

  const ask = <T>(
    question: (id: number) => WorkerRequest,
    take: (answer: WorkerResponse) => T | undefined,
  ): Promise<T> =>
    new Promise((resolve, reject) => {
      const id = count++;
      waiting.set(id, {
        fail: reject,
        take: (answer) => {
          if ("unreadable" in answer) reject(new Unreadable(answer.unreadable));
          else {
            const result = take(answer);
            if (result === undefined) return;
            resolve(result);
          }
          waiting.delete(id);
        },
      });
      worker ??= start();
      worker.postMessage(question(id));
    });

  return {
    read: (path, known, progress) => {
      const documents: (ReadDocument | string)[] = [];
      return ask<ReadFile>(
        (id) => ({ id, path, known }),
        (answer) => {
          if ("problems" in answer) return { documents, problems: answer.problems };
          if ("documents" in answer) {
            for (const one of answer.documents) {
              documents.push(typeof one === "number" ? (known[one] ?? "") : one);
            }
            progress(answer.done, answer.total);
          }
          return undefined;
        },
      );
    },
    locate: (path, wanted) =>
      ask<(Located | undefined)[]>(
        (id) => ({ id, path, wanted }),
        (answer) => ("located" in answer ? [...answer.located] : undefined),
      ),
    end: async () => {
      const ended = worker;
      worker = undefined;
      await ended?.terminate();
    },
  };
}
