import type { Client } from "../../cluster/client/client.ts";

/** A user at a prompt would mistake a longer silence for a hanging program. */
const NOTICE_MS = 2_000;

export interface ResponseWatch {
  /** Gives up after this long without a response. */
  readonly timeoutMs: number;
  /** Called once, if the API server has not responded for 2 s. */
  readonly waiting: (message: string) => void;
  readonly giveUp: (message: string) => void;
}

export interface WatchedClient extends Client {
  /** Ends the watch: everything awaited has arrived. */
  readonly stopWatching: () => void;
}

/**
 * Reports an API server that does not respond, and gives up after a while. An informer cache retries forever, as a
 * replica must; a user at a prompt would see nothing. Responses without an error, and lines of streams, are progress: a
 * large cluster may take its time.
 */
export function watchResponses(client: Client, { timeoutMs, waiting, giveUp }: ResponseWatch): WatchedClient {
  let reason = "";
  let watching = true;
  const notice = setTimeout(() => waiting(`waiting for ${client.server}${reason}`), NOTICE_MS);
  const giveUpNow = () =>
    giveUp(`${client.server} did not respond within ${timeoutMs / 1_000} s (--request-timeout)${reason}`);
  let deadline = setTimeout(giveUpNow, timeoutMs);
  const stopWatching = () => {
    watching = false;
    clearTimeout(notice);
    clearTimeout(deadline);
  };
  const progress = () => {
    if (!watching) return;
    clearTimeout(notice);
    clearTimeout(deadline);
    deadline = setTimeout(giveUpNow, timeoutMs);
  };
  const observe = async <Response extends { readonly status: number }>(
    sent: Promise<Response>,
  ): Promise<Response> => {
    const response = await sent.catch((error: unknown) => {
      reason = `: ${error instanceof Error ? error.message : String(error)}`;
      throw error;
    });
    if (response.status < 400) progress();
    else reason = `: it returns ${response.status}`;
    return response;
  };
  return {
    server: client.server,
    request: (...call) => observe(client.request(...call)),
    stream: async (...call) => {
      const stream = await observe(client.stream(...call));
      return { ...stream, lines: counted(stream.lines, progress) };
    },
    closeIdleConnections: () => client.closeIdleConnections?.(),
    close: () => {
      stopWatching();
      client.close();
    },
    stopWatching,
  };
}

async function* counted(lines: AsyncIterable<string>, progress: () => void): AsyncIterable<string> {
  for await (const line of lines) {
    progress();
    yield line;
  }
}
