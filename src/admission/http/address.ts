/** Where a server can be reached. */
export interface Address {
  readonly host: string;
  readonly port: number;
  readonly url: string;
}

export function addressOf(scheme: "http" | "https", host: string, port: number): Address {
  return { host, port, url: `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}` };
}

/** A server could not listen on its address; the message has the remedy. */
export class ListenError extends Error {
  readonly code: string;

  constructor(message: string, code: string) {
    super(message);
    this.name = "ListenError";
    this.code = code;
  }
}

/** The error of a failed `listen`, with the remedy. `flag` is the one that sets the port: `--port`. */
export function listenError(code: string, host: string, port: number, flag: string): ListenError {
  return new ListenError(listenMessage(code, host, port, flag), code);
}

function listenMessage(code: string, host: string, port: number, flag: string): string {
  switch (code) {
    case "EADDRINUSE":
      return `port ${port} on ${host} is in use: stop the other program or choose another with ${flag}`;
    case "EACCES":
      return `port ${port} on ${host} may not be opened by this user: choose one above 1023 with ${flag}`;
    case "EADDRNOTAVAIL":
      return `${host} is not an address of this machine: choose another with --bind`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `${host} is not a known address: choose another with --bind`;
    default:
      return `port ${port} on ${host} can't be opened (${code})`;
  }
}
