/** What is said while running, in the shape of pino's logger: first the facts, then a constant sentence. */
export interface Log {
  readonly debug: (facts: object, message: string) => void;
  readonly info: (facts: object, message: string) => void;
  readonly warn: (facts: object, message: string) => void;
  readonly error: (facts: object, message: string) => void;
  /** Asked before the facts of a debug line are gathered, so that a line nobody wants costs nothing. @default not wanted */
  readonly isLevelEnabled?: (level: "debug" | "info") => boolean;
}

/** Says nothing. */
export const SILENT: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** What a log line says of something that was thrown. */
export function factsOf(error: unknown): { readonly error: string; readonly stack?: string } {
  if (!(error instanceof Error)) return { error: String(error) };
  return { error: error.message, ...(error.stack === undefined ? {} : { stack: error.stack }) };
}
