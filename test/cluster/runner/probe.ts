// Probes a container at the probe's interval.
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Probe } from "./pod-spec.ts";

/** Runs a command in the container's environment; resolves with its exit code. */
export type Execute = (command: readonly string[]) => Promise<number>;
/** The local port for a port's number or name. */
export type LocalPort = (port: number | string) => number;

function httpGet(port: number, path: string, secure: boolean, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const send = secure ? httpsRequest : httpRequest;
    // A kubelet does not check the certificate either.
    const options = {
      host: "127.0.0.1",
      port,
      path,
      agent: false,
      timeout: timeoutMs,
      rejectUnauthorized: false,
    };
    const sent = send(options, (response) => {
      response.resume();
      const status = response.statusCode ?? 0;
      resolve(status >= 200 && status < 400);
    });
    sent.once("timeout", () => sent.destroy());
    sent.once("error", () => resolve(false));
    sent.end();
  });
}

function tcpConnect(port: number, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port, timeout: timeoutMs });
    const end = (well: boolean) => () => {
      socket.destroy();
      resolve(well);
    };
    socket.once("connect", end(true)).once("error", end(false)).once("timeout", end(false));
  });
}

/** One probe. */
export async function probeOnce(probe: Probe, localPort: LocalPort, execute: Execute): Promise<boolean> {
  const timeoutMs = (probe.timeoutSeconds ?? 1) * 1000;
  if (probe.httpGet) {
    const { port, path = "/", scheme } = probe.httpGet;
    return httpGet(localPort(port), path, scheme === "HTTPS", timeoutMs);
  }
  if (probe.tcpSocket) return tcpConnect(localPort(probe.tcpSocket.port), timeoutMs);
  if (probe.exec) return (await execute(probe.exec.command)) === 0;
  return true;
}

/** Probes until aborted, and reports when the verdict changes after the probe's threshold. */
export async function probeUntil(
  signal: AbortSignal,
  probe: Probe,
  look: () => Promise<boolean>,
  verdict: (well: boolean) => void,
): Promise<void> {
  const { initialDelaySeconds = 0, periodSeconds = 10, successThreshold = 1, failureThreshold = 3 } = probe;
  const pause = (seconds: number): Promise<unknown> =>
    sleep(seconds * 1000, undefined, { signal }).catch(() => undefined);
  let known: boolean | undefined;
  let row = 0;
  let last: boolean | undefined;
  await pause(initialDelaySeconds);
  while (!signal.aborted) {
    const well = await look();
    if (signal.aborted) return;
    row = well === last ? row + 1 : 1;
    last = well;
    if (well !== known && row >= (well ? successThreshold : failureThreshold)) {
      known = well;
      verdict(well);
    }
    await pause(periodSeconds);
  }
}
