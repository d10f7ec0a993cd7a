// The reference for usher: the minimum of any webhook on this Node. It reads the body, parses it and answers a constant
// with the uid; certificate, TLS and keep-alive are like usher's. A separate process: prints one JSON line when it
// listens. Its optional argument is a JSON Patch for every response.
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { LONGEST_CALL_MS } from "../../src/admission/review/routes.ts";
import { LIMITS } from "../../src/admission/server/limits.ts";
import { makeCertificate, namesFor } from "../../src/admission/tls/certificate.ts";

const HOST = "127.0.0.1";

const [patch] = process.argv.slice(2);
const patched =
  patch === undefined ? {} : { patchType: "JSONPatch", patch: Buffer.from(patch).toString("base64") };

const { cert, key, ca } = await makeCertificate(namesFor(HOST));
const server = createServer(
  {
    cert,
    key,
    minVersion: "TLSv1.2",
    keepAliveTimeout: LIMITS.keepAliveMs,
    headersTimeout: LIMITS.headersMs,
    requestTimeout: LONGEST_CALL_MS,
  },
  (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = (chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))?.toString() ?? "";
      const { request: asked } = JSON.parse(text) as { request: { uid: string } };
      const body = JSON.stringify({
        apiVersion: "admission.k8s.io/v1",
        kind: "AdmissionReview",
        response: { uid: asked.uid, allowed: true, ...patched },
      });
      response.writeHead(200, [
        "Content-Type",
        "application/json",
        "Content-Length",
        String(Buffer.byteLength(body)),
      ]);
      response.end(body);
    });
  },
);
server.listen(0, HOST, () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ ready: true, webhook: `https://${HOST}:${port}`, ca })}\n`);
});
process.once("SIGTERM", () => process.exit(0));
