/** What is said while running, in the shape of pino's logger: first the facts, then a constant sentence. */
export interface Log {
  readonly debug: (facts: object, message: string) => void;
  readonly info: (facts: object, message: string) => void;
  readonly warn: (facts: object, message: string) => void;
  readonly error: (facts: object, message: string) => void;
}

/** Says nothing. */
export const SILENT: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
