// One cluster for many test files, started on the first request. Test files run in their own processes, so they ask
// over a unix socket and get the connection data.
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer, get, type Server } from "node:http";
import { join } from "node:path";
import type { ClusterInfo } from "./access/access.ts";
import { type Cluster, startCluster } from "./cluster.ts";
import { makeDataFolder } from "./data-folder.ts";
import { Watchdog } from "./processes/watchdog.ts";
import type { Images } from "./runner.ts";

export class Broker {
  readonly socket: string;
  readonly #folder: string;
  readonly #watchdog: Watchdog;
  readonly #server: Server;
  #cluster: Promise<Cluster> | undefined;

  constructor(images: Images) {
    this.#folder = makeDataFolder();
    this.#watchdog = new Watchdog(this.#folder);
    this.socket = join(this.#folder, "broker.sock");
    this.#server = createServer(async (_, response) => {
      try {
        this.#cluster ??= startCluster({ images });
        response.end(JSON.stringify((await this.#cluster).info));
      } catch (error) {
        response.statusCode = 500;
        response.end(error instanceof Error ? error.message : String(error));
      }
    });
  }

  async listen(): Promise<void> {
    this.#server.listen(this.socket);
    await once(this.#server, "listening");
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    // The caller that asked has already received the error of a failed start.
    await this.#cluster?.then((cluster) => cluster.stop()).catch(() => undefined);
    rmSync(this.#folder, { recursive: true, force: true });
    await this.#watchdog.leave();
  }
}

export async function askBroker(socket: string): Promise<ClusterInfo> {
  return new Promise((resolve, reject) => {
    get({ socketPath: socket, path: "/" }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => {
        if (response.statusCode === 200) resolve(JSON.parse(text) as ClusterInfo);
        else reject(new Error(text));
      });
    }).once("error", reject);
  });
}
