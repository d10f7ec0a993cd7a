// Processes that the page needs: the example cluster as `npm start` serves it, or a dashboard of other files.
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { dirname } from "node:path";
import { createInterface } from "node:readline";

const root = dirname(dirname(import.meta.dirname));

/** Runs a program of the clone and gives what its first lines have, each an object of JSON. */
async function startPrinting(args: readonly string[], lines: number) {
  const child = spawn(process.execPath, [...args], { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (text) => {
    errors += text;
  });
  const printed: Record<string, unknown>[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith("{")) continue;
    printed.push(JSON.parse(line) as Record<string, unknown>);
    if (printed.length === lines) return { child, printed };
  }
  throw new Error(`${args.join(" ")} ended before it was ready:\n${errors}`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
}

/** What a token is exchanged for, as a browser would keep it. */
async function signIn(url: string): Promise<string> {
  const response = await fetch(url, { redirect: "manual" });
  const cookie = response.headers.getSetCookie()[0];
  if (cookie === undefined) throw new Error(`${url} set no cookie: ${response.status}`);
  return cookie;
}

export interface Example {
  readonly origin: string;
  /** As the header Set-Cookie has it. */
  readonly cookie: string;
  readonly webhook: string;
  readonly stop: () => Promise<void>;
}

export async function startExample(): Promise<Example> {
  const args = ["scripts/start.mjs", "--port", "0", "--ops-port", "0", "-o", "json"];
  const { child, printed } = await startPrinting(args, 2);
  const webhook = String(printed[0]?.["webhook"]);
  const url = String(printed[1]?.["url"]);
  const cookie = await signIn(url);
  for (const review of REVIEWS) await sendReview(webhook, review);
  return { origin: new URL(url).origin, cookie, webhook, stop: () => stop(child) };
}

export interface Review {
  readonly path: "/mutate" | "/validate";
  readonly namespace: string;
  readonly name: string;
  readonly user: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** Pods that are changed, warned of, refused and let through. */
const REVIEWS: readonly Review[] = [
  {
    path: "/mutate",
    namespace: "shop",
    name: "etcd-main-0",
    user: "system:serviceaccount:kube-system:statefulset-controller",
    labels: { app: "etcd", role: "main" },
  },
  { path: "/mutate", namespace: "lab", name: "scratch", user: "carol" },
  {
    path: "/mutate",
    namespace: "shop",
    name: "reports-0",
    user: "bob",
    labels: { app: "reports", kind: "batch" },
    spec: { nodeSelector: { "topology.kubernetes.io/zone": "b" } },
  },
  { path: "/validate", namespace: "team-a", name: "report-1", user: "alice", spec: { nodeName: "cp-0" } },
  { path: "/validate", namespace: "payments", name: "debug", user: "alice", spec: { hostNetwork: true } },
];

/** Sends the review of a pod to the webhook, as the API server does. */
export async function sendReview(webhook: string, review: Review): Promise<void> {
  const { path, namespace, name, user, labels = {}, spec = {} } = review;
  const body = {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: randomUUID(),
      kind: { group: "", version: "v1", kind: "Pod" },
      resource: { group: "", version: "v1", resource: "pods" },
      name,
      namespace,
      operation: "CREATE",
      userInfo: { username: user, groups: ["system:authenticated"] },
      object: {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace, labels },
        spec: { containers: [{ name: "app", image: "app:1" }], ...spec },
      },
      oldObject: null,
      dryRun: false,
    },
  };
  const call = request(`${webhook}${path}`, {
    method: "POST",
    rejectUnauthorized: false,
    headers: { "content-type": "application/json" },
  });
  const answered = once(call, "response");
  call.end(JSON.stringify(body));
  const [response] = (await answered) as [IncomingMessage];
  response.resume();
  await once(response, "end");
}

/** A dashboard of its own: of files that a test changes, or one that ends. */
export async function startDashboard(words: readonly string[], port = 0) {
  const args = ["src/cli/main.ts", "dashboard", ...words, "--port", String(port), "-o", "json"];
  const { child, printed } = await startPrinting(args, 1);
  const url = String(printed[0]?.["url"]);
  return { url, origin: new URL(url).origin, stop: () => stop(child) };
}
