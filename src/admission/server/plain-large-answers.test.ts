import { setTimeout as pause } from "node:timers/promises";
import { connect } from "node:tls";
import { expect, test } from "vitest";
import { testModule, testSource } from "../../../test/support/admission/example-cluster.ts";
import { converse, LIMITS, request, serve, uids } from "../../../test/support/admission/plain-connections.ts";
import { allow } from "../../core/evaluate/decision.ts";
import type { AdmissionOptions, AdmissionServer } from "./admission-server.ts";

/** A server whose answers are too large to be handed to the network at once. */
function verbose(options: Partial<AdmissionOptions> = {}): Promise<AdmissionServer> {
  const module = testModule({
    big: {
      phase: "mutate",
      judge: ({ object }) => {
        object.set(["metadata", "annotations", "big"], "x".repeat(4_000_000), undefined);
        return allow();
      },
    },
    welcome: { phase: "validate", judge: () => allow() },
  });
  return serve({ source: testSource({}, module), ...options });
}

test.concurrent("what comes behind a large answer that nobody reads yet keeps its place", async () => {
  const server = await verbose();
  const second = request("two");
  const got = await converse(server, async (socket) => {
    socket.pause();
    socket.write(request("one", { path: "/mutate/big" }) + second.slice(0, 300));
    await pause(200);
    socket.write(second.slice(300) + request("three"));
    await pause(100);
    socket.resume();
  });
  expect(uids(got)).toEqual(["one", "two", "three"]);
  await server.close();
});

test.concurrent("whoever never reads is let go, and costs nothing meanwhile", async () => {
  const warned: string[] = [];
  const note = ({ name }: Error) => warned.push(name);
  process.on("warning", note);
  const server = await verbose({ limits: { ...LIMITS, keepAliveMs: 200, checkEveryMs: 20 } });
  const { host, port } = server.webhookAddress;
  const socket = connect({ host, port, ca: server.ca }, () => {
    socket.pause();
    socket.write(request("one", { path: "/mutate/big" }));
  });
  socket.on("error", () => undefined);
  await pause(1_500);
  process.off("warning", note);
  expect(warned).toEqual([]);
  socket.destroy();
  await server.close();
});
