/** The exit codes of every command, whatever the output format. */
export const EXIT = {
  fine: 0,
  /** It worked, and found something: an object was denied. */
  found: 1,
  /** The call or the input is wrong. */
  wrong: 2,
  /** Usher itself failed. */
  failed: 3,
} as const;

/** Ends a command with a sentence for the person who called it: what is wrong and what to do. */
export class CallError extends Error {
  readonly code: number;

  constructor(message: string, code: number = EXIT.wrong) {
    super(message);
    this.code = code;
  }
}
