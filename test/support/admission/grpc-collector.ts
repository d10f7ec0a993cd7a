import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";

export interface GrpcCollector {
  /** `127.0.0.1:4317` */
  readonly endpoint: string;
  /** Whether any received message contains these bytes, in hex: an id of a trace or a span. */
  readonly has: (id: string) => boolean;
  readonly close: () => Promise<void>;
}

/** For tests: a fake collector that API servers export to. It accepts every message, and parses none. */
export async function startGrpcCollector(): Promise<GrpcCollector> {
  const messages: Buffer[] = [];
  const server = createServer();
  const sessions = new Set<{ destroy: () => void }>();
  server.on("session", (session) => sessions.add(session));
  server.on("stream", (stream) => {
    const parts: Buffer[] = [];
    stream.on("data", (part: Buffer) => parts.push(part));
    stream.on("error", () => undefined);
    stream.on("end", () => {
      messages.push(Buffer.concat(parts));
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      // An empty message: no compression, length zero.
      stream.end(Buffer.alloc(5));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    endpoint: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    has: (id) => messages.some((message) => message.includes(Buffer.from(id, "hex"))),
    close: async () => {
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
