import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "node:tls";
import { expect, test } from "vitest";
import { makeCertificate } from "../../src/admission/tls/certificate.ts";
import { get, post, readyOf, serving } from "./serving.ts";
import { EXAMPLES, folder, program } from "./usher.ts";

const POLICIES = readFileSync(join(EXAMPLES, "policies.yaml"), "utf8");
const NAMESPACES = readFileSync(join(EXAMPLES, "namespaces.yaml"), "utf8");

/** Each test starts programs, which is slow on a busy machine. */
const STARTS = { timeout: 120_000 };

test(
  "prints both addresses when ready; a port in use is exit code 2; Ctrl-C stops at once",
  STARTS,
  async () => {
    const served = await serving(["--source", EXAMPLES]);
    const [, webhook, ops] =
      /^ready in \d+\.\d s · webhook (https:\/\/127\.0\.0\.1:\d+) · health and metrics (http:\/\/127\.0\.0\.1:\d+)$/.exec(
        served.line,
      ) ?? [];
    expect(await served.said(/from/)).toMatch(
      /^usher \S+ · 4 policies, 4 namespaces, 6 nodes from \S+examples\/cluster\n/,
    );
    expect(await get(`${ops}/readyz`)).toMatchObject({ status: 200 });
    expect(await get(`${ops}/livez`)).toMatchObject({ status: 200 });
    expect((await get(`${ops}/metrics`)).body).toContain("usher_");
    const port = new URL(webhook ?? "").port;
    const opsPort = new URL(ops ?? "").port;
    const again = await Promise.all([
      program(["serve", "--source", EXAMPLES, "--port", port, "--ops-port", "0"]),
      program(["serve", "--source", EXAMPLES, "--port", "0", "--ops-port", opsPort]),
    ]);
    for (const [i, flag] of ["--port", "--ops-port"].entries()) {
      expect(again[i]).toMatchObject({ code: 2, out: "" });
      expect(again[i]?.err).toContain(`is in use: stop the other program or choose another with ${flag}\n`);
    }
    // As with npm: the terminal sends the signal to all processes, and the parent process sends it again.
    served.child.kill("SIGINT");
    served.child.kill("SIGINT");
    const { code, out } = await served.end;
    expect(code).toBe(0);
    expect(out.split("\n")).toHaveLength(2);
  },
);

test("clients need a certificate of the configured authority", STARTS, async () => {
  const { ca: clientCa } = await makeCertificate(["kube-apiserver"]);
  const configuration = { apiVersion: "usher.dev/v1alpha1", kind: "UsherConfiguration", spec: { clientCa } };
  const config = join(folder({ "usher.json": JSON.stringify(configuration) }), "usher.json");
  const served = await serving(["--source", EXAMPLES, "--config", config, "-o", "json"]);
  const { webhook, ca = "" } = readyOf(served);
  expect(await post(`${webhook}/validate`, ca, {})).toMatchObject({
    status: 401,
    body: expect.stringContaining("client certificate required"),
  });
  served.child.kill("SIGINT");
  expect((await served.end).code).toBe(0);
});

test(
  "an invalid file is reported while its last good version is served; SIGTERM drains and exits 0",
  STARTS,
  async () => {
    const source = folder({ "policies.yaml": `${POLICIES}---\nkind: [\n`, "namespaces.yaml": NAMESPACES });
    const served = await serving(["--source", source, "-o", "json", "--drain-seconds", "5"]);
    const { webhook, ops, seconds, ca = "" } = readyOf(served);
    expect(seconds).toBeGreaterThan(0);
    expect(await served.said(/from/)).toMatch(
      /policies\.yaml:\d+:\d+: (.|\n)*\^(.|\n)*the rest of this file is served \(4 policies\)/,
    );

    writeFileSync(join(source, "policies.yaml"), POLICIES);
    await served.said(/policies\.yaml: read again without problems \(4 policies\)/);
    writeFileSync(join(source, "policies.yaml"), POLICIES.replace("priority: -10", "priority: ten"));
    const said = await served.said(/still serving/);
    const line = POLICIES.split("\n").findIndex((one) => one.includes("priority: -10")) + 1;
    expect(said).toContain(
      `${source}/policies.yaml:${line}:13: spec.priority: must be an integer, got "ten"\n`,
    );
    expect(said).toContain(`   ${line} |   priority: ten\n      |             ^^^\n`);
    expect(said).toContain("still serving the last good version of this file (4 policies)\n");
    writeFileSync(join(source, "policies.yaml"), POLICIES.replace("pool: etcd", "pool: other"));
    await served.said(/policies\.yaml: 1 policy changed \(etcd-pool\)/);

    const answer = await post(`${webhook}/mutate`, ca, {
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
    });
    expect(answer).toMatchObject({ status: 400, body: expect.stringContaining("has no request") });
    served.child.kill("SIGTERM");
    await served.said(/shutting down/);
    expect(await get(`${ops}/readyz`)).toMatchObject({ status: 503 });
    expect((await served.end).code).toBe(0);
  },
);

test("certificate files are served, and reloaded when they change", STARTS, async () => {
  const [first, second] = await Promise.all([
    makeCertificate(["localhost", "127.0.0.1"]),
    makeCertificate(["localhost", "127.0.0.1"]),
  ]);
  const directory = folder({ "tls.crt": first.cert, "tls.key": first.key });
  const files = ["--tls-cert", join(directory, "tls.crt"), "--tls-key", join(directory, "tls.key")];
  const served = await serving(["--source", EXAMPLES, "-o", "json", ...files, "--bind", "127.0.0.1"]);
  const ready = readyOf(served);
  expect(ready.ca).toBeUndefined();
  expect(await trusts(ready.webhook, first.ca)).toBe(true);
  expect(await trusts(ready.webhook, second.ca)).toBe(false);
  writeFileSync(join(directory, "tls.crt"), second.cert);
  writeFileSync(join(directory, "tls.key"), second.key);
  await served.said(/reloaded serving certificate/);
  expect(await trusts(ready.webhook, second.ca)).toBe(true);
  expect(await trusts(ready.webhook, first.ca)).toBe(false);
  served.child.kill("SIGINT");
  expect((await served.end).code).toBe(0);
});

function trusts(url: string, ca: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), ca }, () => {
      socket.end();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
