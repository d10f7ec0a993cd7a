import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { EgressProxy } from "./proxy.ts";
import { Routes } from "./routes.ts";

test("survives a caller without a route that ends without reading the refusal", async () => {
  const folder = mkdtempSync(join(tmpdir(), "usher-egress-"));
  const proxy = new EgressProxy(join(folder, "egress.sock"), new Routes());
  await proxy.listen();
  const errors: Error[] = [];
  const note = (error: Error) => void errors.push(error);
  process.on("uncaughtExceptionMonitor", note);
  try {
    // Paused before it connects, it reads nothing, so that its end is a reset for the other side.
    const caller = createConnection(proxy.socket).pause();
    await once(caller, "connect");
    caller.write("CONNECT 10.96.0.1:443 HTTP/1.1\r\nHost: a\r\n\r\n");
    await sleep(50);
    caller.destroy();
    await sleep(50);
    expect(errors).toEqual([]);
  } finally {
    process.off("uncaughtExceptionMonitor", note);
    await proxy.close();
    rmSync(folder, { recursive: true });
  }
});
