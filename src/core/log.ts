/** The logger, in the shape of pino's: first the facts, then a constant message. */
export interface Log {
  readonly debug: (facts: object, message: string) => void;
  readonly info: (facts: object, message: string) => void;
  readonly warn: (facts: object, message: string) => void;
  readonly error: (facts: object, message: string) => void;
  /** Checked before the facts of a debug line are gathered, so that a disabled line costs nothing. @default disabled */
  readonly isLevelEnabled?: (level: "debug" | "info") => boolean;
}

/** Discards everything. */
export const SILENT: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** The facts of a log line about something that was thrown. */
export function factsOf(error: unknown): { readonly error: string; readonly stack?: string } {
  if (!(error instanceof Error)) return { error: String(error) };
  return { error: error.message, ...(error.stack === undefined ? {} : { stack: error.stack }) };
}
