import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import type { Running } from "../processes/process.ts";
import { logTail } from "../processes/process.ts";

const LOOK_AGAIN_MS = 50;
/** Far more than needed, for busy machines. */
const TIMEOUT_MS = 120_000;

function answers(url: string, ca: string): Promise<boolean> {
  return new Promise((resolve) => {
    const send = url.startsWith("https:") ? httpsRequest : httpRequest;
    const sent = send(url, { ca, agent: false, timeout: 2000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    sent.once("timeout", () => sent.destroy());
    sent.once("error", () => resolve(false));
    sent.end();
  });
}

/** Waits until a component is healthy; if it ends before, or takes too long, the error holds the end of its log. */
export async function waitHealthy(running: Running, url: string, ca: string): Promise<void> {
  const until = Date.now() + TIMEOUT_MS;
  while (!(await answers(url, ca))) {
    if (running.ending !== undefined) throw new Error(running.obituary());
    if (Date.now() > until) {
      const { name, log } = running.program;
      throw new Error(
        `${name} was not ready within ${TIMEOUT_MS / 1000} s; its log (${log}) ends with:\n${logTail(log)}`,
      );
    }
    await sleep(LOOK_AGAIN_MS);
  }
}
