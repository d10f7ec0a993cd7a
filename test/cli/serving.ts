import type { ChildProcessByStdio } from "node:child_process";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { ended, MAIN, type Ran, start } from "./usher.ts";

export interface Ready {
  readonly ready: true;
  readonly webhook: string;
  readonly ops: string;
  readonly seconds: number;
  readonly ca?: string;
}

export interface Serving {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** The first line on stdout. */
  readonly line: string;
  /** Resolves once stderr contains the text; rejects if stderr ends before. */
  readonly said: (what: RegExp) => Promise<string>;
  readonly end: Promise<Ran>;
}

/** Starts the real program and waits for its first line. */
export async function serving(args: readonly string[]): Promise<Serving> {
  const child = start(process.execPath, [MAIN, "serve", "--port", "0", "--ops-port", "0", ...args]);
  return watched(child);
}

/** Follows a program that prints a line to stdout when it is ready. */
export async function watched(child: Serving["child"]): Promise<Serving> {
  let heard = "";
  const listeners = new Set<() => void>();
  child.stderr.on("data", (part: Buffer) => {
    heard += part.toString();
    for (const listener of listeners) listener();
  });
  const end = ended(child);
  const said = (what: RegExp): Promise<string> =>
    new Promise((resolve, reject) => {
      const look = () => {
        if (!what.test(heard)) return;
        listeners.delete(look);
        resolve(heard);
      };
      listeners.add(look);
      look();
      void end.then(() => reject(new Error(`it ended without printing ${what}:\n${heard}`)));
    });
  const line = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    void end.then(({ err }) => reject(new Error(`it ended before it was ready:\n${err}`)));
  });
  return { child, line, said, end };
}

export function readyOf({ line }: Serving): Ready {
  return JSON.parse(line) as Ready;
}

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export function get(url: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    httpRequest(url, { agent: false }, (response) => collect(response).then(resolve, reject))
      .on("error", reject)
      .end();
  });
}

/** POSTs JSON, trusting only this authority. `servername`: the name that the certificate must have, if it is not the host. */
export function post(url: string, ca: string, body: unknown, servername?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const options = { method: "POST", ca, headers, agent: false, ...(servername && { servername }) };
    httpsRequest(url, options, (response) => collect(response).then(resolve, reject))
      .on("error", reject)
      .end(JSON.stringify(body));
  });
}

async function collect(response: Readable & { readonly statusCode?: number | undefined }): Promise<Answer> {
  let body = "";
  for await (const part of response) body += String(part);
  return { status: response.statusCode ?? 0, body };
}
