#!/usr/bin/env node
import { declarations as modules } from "../modules/index.ts";
import { EXIT } from "./exit.ts";
import { nameFrom } from "./io.ts";
import { faultText, run } from "./run.ts";

// The reader of a pipe may close it early, as `head` does.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? EXIT.fine : EXIT.failed);
});

process.on("uncaughtException", (error) => {
  process.stderr.write(faultText(error));
  process.exit(EXIT.failed);
});

// bin/usher passes the name that it was called by; an installed program has it in its own path.
const name = nameFrom(process.env["USHER_CALLED_AS"] ?? process.argv[1] ?? "", modules);
const { stdin, stdout, stderr, env } = process;
process.exitCode = await run(process.argv.slice(2), { stdin, stdout, stderr, env, name, modules });
