/** The exit codes of every command, independent of the output format. */
export const EXIT = {
  fine: 0,
  /** Found something: a denied object, drift. */
  found: 1,
  /** Invalid arguments or input. */
  wrong: 2,
  /** Usher or the cluster failed. */
  failed: 3,
} as const;

/** Ends a command with a message: the problem and the remedy. */
export class CallError extends Error {
  readonly code: number;

  constructor(message: string, code: number = EXIT.wrong) {
    super(message);
    this.code = code;
  }
}

/** No cluster is named. A command that reads files in its place says so. */
export class NoClusterError extends CallError {}
