// One cluster for many test files, started when the first of them asks. Test files run in processes of their own, so they ask over a
// unix socket and get what they need to connect.
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer, get, type Server } from "node:http";
import { join } from "node:path";
import type { ClusterInfo } from "./access/access.ts";
import { type Cluster, startCluster } from "./cluster.ts";
import { makeDataFolder } from "./data-folder.ts";
import { Watchdog } from "./processes/watchdog.ts";

export class Broker {
  readonly socket: string;
  readonly #folder: string;
  readonly #watchdog: Watchdog;
  readonly #server: Server;
  #cluster: Promise<Cluster> | undefined;

  constructor() {
    this.#folder = makeDataFolder();
    this.#watchdog = new Watchdog(this.#folder);
    this.socket = join(this.#folder, "broker.sock");
    this.#server = createServer(async (_, response) => {
      try {
        this.#cluster ??= startCluster();
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
    // A start that failed has already been told to the one who asked.
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
