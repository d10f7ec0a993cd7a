import { once } from "node:events";
import { Agent, type AgentOptions, type RequestOptions } from "node:https";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";

/** The proxy, and what is behind it, must be reached within this. */
const DIAL_MS = 20_000;

const USUAL_PORT = 1080;

const VERSION = 5;
const CONNECT = 1;
const BY_NAME = 3;
const NO_PASSWORD = 0;
const PASSWORD = 2;

/** How long an address of each type is in an answer; by a name, one byte says so first. */
const ADDRESS_BYTES: Readonly<Record<number, number>> = { 1: 4, 4: 16 };

const REASONS = [
  "",
  "it failed",
  "its rules do not allow it",
  "the network can't be reached",
  "the host can't be reached",
  "the connection was refused",
  "it took too long",
];

/** Connections through a SOCKS 5 proxy (RFC 1928, with a password RFC 1929), which resolves the names. */
export class SocksAgent extends Agent {
  readonly #proxy: URL;

  constructor(proxy: string, options: AgentOptions) {
    super(options);
    this.#proxy = new URL(proxy);
  }

  override createConnection(
    options: RequestOptions,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): undefined {
    const done = callback as ((error: Error | null, stream?: Duplex | null) => void) | undefined;
    const tls = (socket: Socket) => {
      try {
        return super.createConnection({ ...options, socket } as RequestOptions);
      } catch (error) {
        // As with a client certificate that is none.
        socket.destroy();
        throw error;
      }
    };
    dial(this.#proxy, String(options.host ?? options.hostname), Number(options.port))
      .then(tls)
      .then(
        (stream) => done?.(null, stream),
        (error: Error) => done?.(error),
      );
  }
}

async function dial(proxy: URL, host: string, port: number): Promise<Socket> {
  const address = `${proxy.hostname}:${proxy.port || USUAL_PORT}`;
  const socket = connect(Number(proxy.port || USUAL_PORT), proxy.hostname.replace(/^\[|\]$/g, ""));
  const late = setTimeout(() => socket.destroy(new Error("it did not answer in time")), DIAL_MS);
  try {
    await once(socket, "connect");
    const { read, leave } = readerOf(socket);
    await greet(socket, read, proxy);
    const name = Buffer.from(host);
    if (name.length > 255) throw new Error("the server's name is too long for it");
    const target = Buffer.from([VERSION, CONNECT, 0, BY_NAME, name.length, ...name, port >> 8, port & 255]);
    socket.write(target);
    const [, reply = 1, , type = 0] = await read(4);
    if (reply !== 0) throw new Error(REASONS[reply] ?? `it refused with ${reply}`);
    const length = ADDRESS_BYTES[type] ?? (await read(1))[0] ?? 0;
    await read(length + 2);
    leave();
    return socket;
  } catch (error) {
    socket.destroy();
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`through the proxy ${address} to ${host}:${port}: ${why}`, { cause: error });
  } finally {
    clearTimeout(late);
  }
}

async function greet(socket: Socket, read: Reader["read"], proxy: URL): Promise<void> {
  const [name, password] = [proxy.username, proxy.password].map((text) =>
    Buffer.from(decodeURIComponent(text)),
  );
  const known = name !== undefined && password !== undefined && name.length > 0;
  socket.write(Buffer.from(known ? [VERSION, 2, NO_PASSWORD, PASSWORD] : [VERSION, 1, NO_PASSWORD]));
  const [version, method] = await read(2);
  if (version !== VERSION) throw new Error("it does not speak SOCKS 5");
  if (method === NO_PASSWORD) return;
  if (method !== PASSWORD || !known) throw new Error("it wants a password that proxy-url does not have");
  socket.write(Buffer.from([1, name.length, ...name, password.length, ...password]));
  const [, outcome] = await read(2);
  if (outcome !== 0) throw new Error("it did not take the password");
}

interface Reader {
  readonly read: (bytes: number) => Promise<Buffer>;
  /** What has come beyond what was read is the server's. */
  readonly leave: () => void;
}

function readerOf(socket: Socket): Reader {
  let got = Buffer.alloc(0);
  let failure: Error | undefined;
  let wake: () => void = () => undefined;
  const take = (chunk: Buffer): void => {
    got = Buffer.concat([got, chunk]);
    wake();
  };
  const fail = (error?: Error | boolean): void => {
    failure ??= error instanceof Error ? error : new Error("it ended the connection");
    wake();
  };
  socket.on("data", take).once("end", fail).once("error", fail).once("close", fail);
  return {
    read: async (bytes) => {
      while (got.length < bytes) {
        if (failure !== undefined) throw failure;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      const part = got.subarray(0, bytes);
      got = got.subarray(bytes);
      return part;
    },
    leave: () => {
      socket.off("data", take).off("end", fail).off("error", fail).off("close", fail).pause();
      if (got.length > 0) socket.unshift(got);
    },
  };
}
