import { CommanderError } from "commander";
import { CallError, EXIT } from "./exit.ts";
import type { Io } from "./io.ts";
import { program } from "./program.ts";

/** Runs a command line and gives its exit code; what goes wrong becomes a sentence on stderr. Never rejects. */
export async function run(args: readonly string[], io: Io): Promise<number> {
  const outcome = { code: EXIT.fine as number };
  try {
    // Who types the name alone wants to know what there is, as with kubectl.
    await program(io, outcome).parseAsync(args.length === 0 ? ["--help"] : args, { from: "user" });
    return outcome.code;
  } catch (error) {
    // Commander has said itself what is wrong.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.wrong;
    if (error instanceof CallError) {
      io.stderr.write(`usher: ${error.message}\n`);
      return error.code;
    }
    io.stderr.write(faultText(error));
    return EXIT.failed;
  }
}

/** With the stack: whoever reports it has nothing else to show us. */
export function faultText(error: unknown): string {
  const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `usher: this is a fault in usher, please report it: ${what}\n`;
}
