import { isObject, type Json, type JsonObject, textOf } from "../../../core/json.ts";
import { forbidden, notSupported, type PodFieldError } from "../field-error.ts";
import { byCodePoint } from "../go-text.ts";

const WINDOWS = ["SIGKILL", "SIGTERM"];
const NAMED =
  "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT SEGV STKFLT STOP SYS TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ RTMIN RTMAX";
const LINUX = [
  ...NAMED.split(" "),
  ...Array.from({ length: 15 }, (_, i) => `RTMIN+${i + 1}`),
  ...Array.from({ length: 14 }, (_, i) => `RTMAX-${i + 1}`),
]
  .map((name) => `SIG${name}`)
  .sort(byCodePoint);
const SUPPORTED: Readonly<Record<string, readonly string[]>> = { linux: LINUX, windows: WINDOWS };

/** Main containers first. Ephemeral containers, and init containers that end, may have no lifecycle at all. */
const LISTS = ["containers", "initContainers"] as const;

/**
 * Stop signals of a container need an explicit OS that has them. The API server reads the field only if its gate
 * ContainerStopSignals is on, and drops it otherwise.
 */
export function validateStopSignals(spec: JsonObject, prefix: string, most: number): PodFieldError[] {
  const errors: PodFieldError[] = [];
  for (const list of LISTS) {
    const containers = spec[list];
    if (!Array.isArray(containers)) continue;
    for (let i = 0; i < containers.length && errors.length < most; i++) {
      const container: Json | undefined = containers[i];
      if (!isObject(container) || !isObject(container["lifecycle"])) continue;
      if (list === "initContainers" && container["restartPolicy"] !== "Always") continue;
      const signal = container["lifecycle"]["stopSignal"];
      if (signal === undefined || signal === null) continue;
      const error = validateSignal(
        textOf(signal),
        spec["os"],
        `${prefix}.${list}[${i}].lifecycle.stopSignal`,
      );
      if (error !== undefined) errors.push(error);
    }
  }
  return errors;
}

function validateSignal(signal: string, os: Json | undefined, field: string): PodFieldError | undefined {
  if (os === undefined || os === null)
    return forbidden(field, "may not be set for containers with empty `spec.os.name`");
  const name = isObject(os) ? os["name"] : undefined;
  const supported = name === "linux" || name === "windows" ? SUPPORTED[name] : undefined;
  return supported === undefined || supported.includes(signal)
    ? undefined
    : notSupported(field, signal, supported);
}
