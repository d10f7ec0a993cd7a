#!/usr/bin/env node
import { declarations as modules } from "../modules/index.ts";
import { EXIT } from "./exit.ts";
import { nameFrom } from "./io.ts";
import { faultText, run } from "./run.ts";

// Who reads our output may stop reading, as `head` does: then there is nobody left to tell anything.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? EXIT.fine : EXIT.failed);
});

process.on("uncaughtException", (error) => {
  process.stderr.write(faultText(error));
  process.exit(EXIT.failed);
});

// The launcher of a clone knows by which name it was called; an installed program is called by it itself.
const name = nameFrom(process.env["USHER_CALLED_AS"] ?? process.argv[1] ?? "");
const { stdin, stdout, stderr, env } = process;
process.exitCode = await run(process.argv.slice(2), { stdin, stdout, stderr, env, name, modules });
