// One request before the load: a bench of wrong answers measures nothing.
import { readFileSync } from "node:fs";
import { request } from "node:https";
import type { Served } from "./servers.ts";

const WITHIN_MS = 10_000;

/** Rejects unless the response allows the pod, and has a patch exactly if one is due. */
export async function checkResponse(
  server: Served,
  path: string,
  body: string,
  patched: boolean,
): Promise<void> {
  const text = await post(server, path, body);
  const { response } = JSON.parse(text) as { response?: { allowed?: boolean; patch?: string } };
  if (response?.allowed !== true || (response.patch !== undefined) !== patched) {
    throw new Error(
      `${server.name} should have ${patched ? "patched" : "allowed"} the pod and answered ${text}`,
    );
  }
}

function post(server: Served, path: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request(
      `${server.ready.webhook}${path}`,
      {
        method: "POST",
        ca: readFileSync(server.ca),
        agent: false,
        timeout: WITHIN_MS,
        headers: { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) },
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        response.once("end", () => resolve(text));
      },
    );
    call.once("timeout", () => call.destroy(new Error("no answer in time")));
    call.once("error", reject);
    call.end(body);
  });
}
