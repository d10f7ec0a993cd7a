import { constants } from "node:os";
import { factsOf, type Log } from "../../core/log.ts";

const SIGNALS = ["SIGTERM", "SIGINT"] as const;

export interface SignalOptions {
  readonly drain: () => Promise<void>;
  readonly log: Log;
  /** @default process.exit */
  readonly exit?: (code: number) => void;
}

/**
 * The first SIGTERM or SIGINT drains and exits 0; a second one exits immediately with the shell's code for the signal.
 * Returns a function that removes the listeners.
 */
export function onSignals({ drain, log, exit = (code) => process.exit(code) }: SignalOptions): () => void {
  let draining = false;
  const shutDown = async (signal: string) => {
    log.info({ signal }, "shutting down");
    try {
      await drain();
      exit(0);
    } catch (error) {
      log.error(factsOf(error), "shutdown failed");
      exit(3);
    }
  };
  const onSignal = (signal: (typeof SIGNALS)[number]) => {
    if (draining) {
      exit(128 + constants.signals[signal]);
      return;
    }
    draining = true;
    void shutDown(signal);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return () => {
    for (const signal of SIGNALS) process.removeListener(signal, onSignal);
  };
}
