import { join } from "node:path";
import { Command } from "commander";
import type { Operand } from "../../core/module/operand.ts";
import type { Io } from "../io.ts";
import { connecting, logLevel, output, port, seconds } from "../options.ts";
import { version } from "../version.ts";

/** The command line of an operand. Its code is loaded when it runs. */
export function operandProgram(operand: Operand, io: Io): Command {
  const { name, summary, configurationFile, certificateFolder } = operand;
  const command = new Command(name)
    .description(
      `${summary} A file that can't be used is an error at the start; one that changes later takes effect if it can be used. Counts are shared with usher. SIGTERM drains.`,
    )
    .version(version(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .requiredOption("--configuration <file>", "the limits (kind ProjectRequestLimitConfig)")
    .option("--port <n>", "port of the webhook; 0 chooses a free one", port, operand.port)
    .option(
      "--ops-port <n>",
      "port of /livez, /readyz and /metrics; 0 chooses a free one",
      port,
      operand.opsPort,
    )
    .option("--bind <address>", "address to listen on", "0.0.0.0")
    .option(
      "--tls-cert <file>",
      "serving certificate (PEM), reloaded when it changes",
      join(certificateFolder, "tls.crt"),
    )
    .option("--tls-key <file>", "private key of the certificate (PEM)", join(certificateFolder, "tls.key"))
    .option(
      "--drain-seconds <n>",
      "seconds to keep serving after SIGTERM, so that clients notice",
      seconds,
      5,
    )
    .addOption(logLevel())
    .addOption(output(["text", "json"], "text", "format of the ready line"))
    .allowExcessArguments(false)
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, `${name}: `)),
    })
    .exitOverride()
    .addHelpText(
      "after",
      `\nExample:\n  ${name} --configuration=${configurationFile}\n\nExit codes: 0 success, 2 invalid arguments or configuration, 3 it or the cluster failed.`,
    );
  return connecting(command).action(async (options) => {
    const { serveOperand } = await import("./operand.ts");
    await serveOperand(operand, options, io);
  });
}
