// Clients that try to fill the memory of a server, each in its own way.
import { setTimeout as pause } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { review } from "../support/admission/example-cluster.ts";

const pod = (spec: string) =>
  `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","labels":{"app":"web"}},"spec":{${spec}"containers":[]}}`;

function body(object: string, oldObject?: string): string {
  const operation = oldObject === undefined ? "CREATE" : "UPDATE";
  const text = JSON.stringify(review({ object: "NEW", oldObject: "OLD", operation, dryRun: true }));
  return text.replace('"NEW"', object).replace('"OLD"', oldObject ?? "null");
}

/** A list of elements, up to this many bytes. */
function list(bytes: number, element: (i: number) => string): string {
  const elements: string[] = [];
  for (let i = 0, length = 0; length < bytes; i++) {
    const text = element(i);
    elements.push(text);
    length += text.length + 1;
  }
  return `[${elements.join(",")}]`;
}

const toleration = (i: number) => `{"key":"k${i}","operator":"Exists"}`;
const tolerating = pod(`"tolerations":${list(1_300_000, toleration)},`);

/** Bodies that take much more memory than bytes, or many bytes. */
const BODIES = [
  body(pod(`"tolerations":${list(2_900_000, () => "{}")},`)),
  body(pod(`"tolerations":${list(7_900_000, () => "{}")},`)),
  body(pod(`"tolerations":${list(370_000, () => "{}")},`)),
  body(pod(`"a":${list(1_100_000, (i) => `{"${i.toString(36)}":1}`)},`)),
  body(pod(`"a":${list(1_600_000, (i) => `{"a${i.toString(36)}":1,"b${i.toString(36)}":1}`)},`)),
  body(pod(`"a":"${"x".repeat(7_900_000)}",`)),
  body(pod(`"a":"${"é€".repeat(1_500_000)}",`)),
  body(pod(`"a":${"[".repeat(2_000_000)}`)),
  body(tolerating, tolerating),
];

const head = (...lines: string[]) =>
  `${["POST /mutate?timeout=10s HTTP/1.1", "Host: usher", "Content-Type: application/json", ...lines].join("\r\n")}\r\n\r\n`;

const request = (text: string) => head(`Content-Length: ${Buffer.byteLength(text)}`) + text;

export interface Target {
  readonly host: string;
  readonly port: number;
  readonly ca: string;
}

/**
 * Runs all of them concurrently for a duration, and counts the responses by status. Responses to oversized requests are
 * counted separately.
 */
export async function hostileLoad(target: Target, ms: number): Promise<Map<string, number>> {
  const sockets = new Set<TLSSocket>();
  const statuses = new Map<string, number>();
  const over = Date.now() + ms;
  const open = () =>
    new Promise<TLSSocket>((resolve) => {
      const socket = connect(target, () => resolve(socket));
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        resolve(socket);
      });
      sockets.add(socket);
    });
  const repeat = async (step: (socket: TLSSocket) => unknown) => {
    while (Date.now() < over) await step(await open());
  };
  const send = (text: string) => async (socket: TLSSocket) => {
    if (socket.closed) return;
    socket.write(text);
    await new Promise<void>((resolve) => {
      socket.once("data", (data) => {
        const status = `${String(data).slice(9, 12)}${String(data).includes("USHER-E05") ? " too large" : ""}`;
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        socket.destroy();
      });
      socket.once("close", resolve);
    });
  };
  const unread = async (socket: TLSSocket) => {
    socket.pause();
    socket.write(request(body(tolerating)));
    await pause(100);
  };
  const unfinished = async (socket: TLSSocket) => {
    socket.write(request(BODIES[5] ?? "").slice(0, -1_000));
    await pause(50);
  };
  const smallChunks = async (socket: TLSSocket) => {
    socket.write(head("Transfer-Encoding: chunked"));
    for (let i = 0; i < 50 && !socket.destroyed; i++) {
      socket.write("1\r\nx\r\n".repeat(10_000));
      await pause(5);
    }
  };
  const idle = async (socket: TLSSocket) => {
    socket.write(request(body(pod(""))));
    await pause(1);
  };
  await Promise.all([
    ...BODIES.map((text) => repeat(send(request(text)))),
    ...[unread, unfinished, smallChunks, idle].map(repeat),
  ]);
  for (const socket of sockets) socket.destroy();
  return statuses;
}
