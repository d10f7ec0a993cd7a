import { pino } from "pino";
import type { Log } from "../../core/log.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** Text on a terminal, elsewhere JSON lines with constant keys. Logs go to stderr: stdout is for data. */
export function createLog(level: LogLevel): Log {
  if (process.stderr.isTTY !== true) {
    return pino(
      { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
      pino.destination({ dest: 2, sync: true }),
    );
  }
  const levels: readonly LogLevel[] = ["debug", "info", "warn", "error"];
  const line = (at: LogLevel) => (facts: object, message: string) => {
    if (levels.indexOf(at) < levels.indexOf(level)) return;
    const time = new Date().toTimeString().slice(0, 8);
    const fields = Object.entries(facts).map(
      ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
    );
    process.stderr.write(
      `${time} ${at === "info" ? "" : `${at}: `}${message}${fields.length === 0 ? "" : `  ${fields.join(" ")}`}\n`,
    );
  };
  return {
    debug: line("debug"),
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
    isLevelEnabled: (wanted) => levels.indexOf(wanted as LogLevel) >= levels.indexOf(level),
  };
}
