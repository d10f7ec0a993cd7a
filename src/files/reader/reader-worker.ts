import { parentPort } from "node:worker_threads";
import { reasonOf, Unreadable } from "./bytes.ts";
import type { ReadDocument } from "./read-documents.ts";
import { locateInFile, readFile } from "./reader.ts";
import {
  DOCUMENTS_A_MESSAGE,
  NUMBERS_A_MESSAGE,
  type WorkerRequest,
  type WorkerResponse,
} from "./worker-protocol.ts";

/**
 * The thread that reads large sources. A YAML tree is many times as large as its text; here it is garbage of a heap that goes
 * away as a whole when the thread ends, and the thread that answers requests never waits for it.
 */
const port = parentPort;
if (port === null) throw new Error("reader-worker is started by the reader, not on its own");

const send = (answer: WorkerResponse): void => port.postMessage(answer);

let queue = Promise.resolve();
port.on("message", (question: WorkerRequest) => {
  queue = queue.then(() => answer(question));
});

async function answer(question: WorkerRequest): Promise<void> {
  const { id, path } = question;
  try {
    if ("wanted" in question) send({ id, located: await locateInFile(path, question.wanted) });
    else send({ id, problems: await readInto(id, path, question.known) });
  } catch (error) {
    send({ id, unreadable: error instanceof Unreadable ? error.message : reasonOf(error) });
  }
}

async function readInto(id: number, path: string, known: readonly string[]) {
  const places = new Map(known.map((hash, i) => [hash, i]));
  let documents: (ReadDocument | number)[] = [];
  let fresh = 0;
  let done = 0;
  let total = 0;
  const problems = await readFile(path, known, (document, count) => {
    if (typeof document === "string") documents.push(places.get(document) ?? -1);
    else {
      documents.push(document);
      fresh++;
    }
    done++;
    total = count;
    if (fresh < DOCUMENTS_A_MESSAGE && documents.length < NUMBERS_A_MESSAGE) return undefined;
    send({ id, documents, done, total });
    documents = [];
    fresh = 0;
    return undefined;
  });
  if (documents.length > 0) send({ id, documents, done, total });
  return problems;
}
