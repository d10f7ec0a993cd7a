// A container has a file system and a network of its own; a local process has neither. So paths and ports of the pod's
// manifest are rewritten in the command, the arguments and the environment:
//
// - a mount path (`/etc/usher/tls`, and anything below it) becomes the folder that holds the mounted files;
// - a declared container port, where it is a whole value (`8443`), follows `=` (`--port=8443`) or follows a host
//   (`:8443`, `0.0.0.0:8443`), becomes a free local port, and the host becomes the loopback address;
// - "every address" as a whole value or after `=` (`--bind=0.0.0.0`) becomes the loopback address.
//
// A program that has a path or a port built in can read `USHER_RUN_ROOT` (mount paths are below it) and
// `USHER_RUN_PORT_<port>`.

/** Container path to local folder. */
export type Paths = ReadonlyMap<string, string>;
/** Container port to local port. */
export type Ports = ReadonlyMap<number, number>;

const LISTEN_ANYWHERE = /(?:0\.0\.0\.0|\[::\])?:(\d+)(?!\d)/g;
const EVERY_ADDRESS = /(^|=)(?:0\.0\.0\.0|::)$/;
const WHOLE_OR_ASSIGNED = /(^|=)(\d+)$/;

function escapeForPattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function rewritePaths(text: string, paths: Paths): string {
  if (paths.size === 0) return text;
  // Longest first: `/etc/usher/tls` before `/etc/usher`.
  const known = [...paths.keys()].sort((one, other) => other.length - one.length).map(escapeForPattern);
  const pattern = new RegExp(`(?<![\\w./-])(${known.join("|")})(?![\\w.-])`, "g");
  return text.replace(pattern, (_, path: string) => paths.get(path) ?? path);
}

function rewritePorts(text: string, ports: Ports): string {
  const whole = text.replace(WHOLE_OR_ASSIGNED, (match, before: string, port: string) => {
    const local = ports.get(Number(port));
    return local === undefined ? match : `${before}${local}`;
  });
  return whole.replace(LISTEN_ANYWHERE, (match, port: string, offset: number, all: string) => {
    const local = ports.get(Number(port));
    if (local === undefined) return match;
    // `:8443` alone means every address of the machine; `localhost:8443` already names one.
    const named = match.startsWith(":") && /[\w\])]/.test(all[offset - 1] ?? "");
    return named ? `:${local}` : `127.0.0.1:${local}`;
  });
}

export function rewrite(text: string, paths: Paths, ports: Ports): string {
  const local = text.replace(EVERY_ADDRESS, (_, before: string) => `${before}127.0.0.1`);
  return rewritePaths(rewritePorts(local, ports), paths);
}
