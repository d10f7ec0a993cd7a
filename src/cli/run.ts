import { CommanderError } from "commander";
import { CallError, EXIT, NoClusterError } from "./exit.ts";
import { type Io, operandCalled } from "./io.ts";
import { operandProgram } from "./operand/operand-program.ts";
import { rejectRepeated } from "./options.ts";
import { program } from "./program.ts";

/** Runs a command line and returns its exit code; errors are printed on stderr. Never rejects. */
export async function run(args: readonly string[], io: Io): Promise<number> {
  const outcome = { code: EXIT.fine as number };
  let takesFiles = false;
  const operand = operandCalled(io.name, io.modules);
  try {
    // A shell calls it for each key. Flags of other commands are among the words, so no parser may read them.
    if (args[0] === "__complete" && operand === undefined) {
      const { complete } = await import("./completion/complete.ts");
      await complete(args.slice(1), io);
      return EXIT.fine;
    }
    const called = operand === undefined ? program(io, outcome) : operandProgram(operand, io);
    // As with kubectl, the bare name prints help.
    const given = args.length === 0 && operand === undefined ? ["--help"] : args;
    called.hook("preAction", (_, command) => {
      takesFiles = command.options.some(({ long }) => long === "--source");
    });
    await rejectRepeated(called).parseAsync(given, { from: "user" });
    return outcome.code;
  } catch (error) {
    // Commander has printed the error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.fine : EXIT.wrong;
    if (error instanceof CallError) {
      const files = error instanceof NoClusterError && takesFiles ? "; or read files with --source" : "";
      io.stderr.write(`${operand?.name ?? "usher"}: ${error.message}${files}\n`);
      return error.code;
    }
    io.stderr.write(faultText(error));
    return EXIT.failed;
  }
}

/** With the stack, for bug reports. */
export function faultText(error: unknown): string {
  const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `usher: internal error, please report it: ${what}\n`;
}
