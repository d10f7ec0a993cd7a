// For tests: an admission server with short timeouts, and clients that write to it byte by byte.
import { setTimeout as pause } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import type { AdmissionOptions, AdmissionServer } from "../../../src/admission/admission-server.ts";
import { review } from "./example-cluster.ts";
import { startTestServer } from "./server.ts";

/** Short, so that every connection ends by itself. */
export const LIMITS = {
  bodyBytes: 200_000,
  headersMs: 400,
  requestMs: 600,
  keepAliveMs: 1_000,
  checkEveryMs: 50,
};

export function serve(options: Partial<AdmissionOptions> = {}): Promise<AdmissionServer> {
  return startTestServer({ limits: LIMITS, ...options });
}

export const bodyOf = (uid: string, pad = 0) => JSON.stringify(review({ uid })).padEnd(pad);

export function request(
  uid: string,
  { path = "/validate/welcome", pad = 0, lines = [] as string[] } = {},
): string {
  const body = bodyOf(uid, pad);
  const head = [
    `POST ${path}?timeout=5s HTTP/1.1`,
    "Host: usher",
    "User-Agent: kube-apiserver-admission",
    `Content-Length: ${body.length}`,
    "Content-Type: application/json",
    "Accept-Encoding: gzip",
    ...lines,
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

/** Everything received until the server closes the connection. */
export function exchange(server: AdmissionServer, send: (socket: TLSSocket) => unknown): Promise<string> {
  const { host, port } = server.webhookAddress;
  return new Promise((resolve) => {
    let got = "";
    const socket = connect({ host, port, ca: server.ca }, () => void send(socket));
    socket.setEncoding("latin1");
    socket.on("data", (text) => {
      got += text;
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(got));
  });
}

/** Each piece is a separate write, so that it usually arrives as a separate chunk. */
export async function inPieces(socket: TLSSocket, pieces: readonly (string | Buffer)[]): Promise<void> {
  socket.setNoDelay(true);
  for (const piece of pieces) {
    if (socket.destroyed) return;
    socket.write(piece, "latin1");
    await pause(2);
  }
}

export const uids = (got: string) => [...got.matchAll(/"uid":"([\w-]+)"/g)].map((match) => match[1]);
