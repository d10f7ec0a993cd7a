import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { at, type Json, listAt, stringAt } from "../../../src/core/json.ts";

/** A span as a collector receives it. */
export interface ReceivedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly error: boolean;
  /** Nanoseconds since 1970. */
  readonly start: bigint;
  readonly end: bigint;
  /** Attributes of the process. */
  readonly resource: Readonly<Record<string, unknown>>;
}

export interface Collector {
  readonly endpoint: string;
  /** All received spans, in order of arrival. */
  readonly spans: ReceivedSpan[];
  /** The response to each request from now on. */
  status: number;
  readonly close: () => Promise<void>;
}

/** For tests: a fake OpenTelemetry collector that receives OTLP as JSON over HTTP. */
export async function startCollector(): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.url !== "/v1/traces" || request.headers["content-type"] !== "application/json") {
      response.writeHead(404).end();
      return;
    }
    if (collector.status === 200) spans.push(...spansIn(JSON.parse(Buffer.concat(chunks).toString())));
    response.writeHead(collector.status, { "content-type": "application/json" }).end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const collector: Collector = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    status: 200,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return collector;
}

function spansIn(body: Json): ReceivedSpan[] {
  return listAt(body, "resourceSpans").flatMap((group) => {
    const resource = attributesOf(at(group, "resource"));
    const spans = listAt(group, "scopeSpans").flatMap((scope) => listAt(scope, "spans"));
    return spans.map((span) => ({
      name: stringAt(span, "name") ?? "",
      traceId: stringAt(span, "traceId") ?? "",
      spanId: stringAt(span, "spanId") ?? "",
      parentSpanId: stringAt(span, "parentSpanId"),
      attributes: attributesOf(span),
      error: at(span, "status", "code") === 2,
      start: BigInt(stringAt(span, "startTimeUnixNano") ?? 0),
      end: BigInt(stringAt(span, "endTimeUnixNano") ?? 0),
      resource,
    }));
  });
}

function attributesOf(holder: Json | undefined): Record<string, unknown> {
  return Object.fromEntries(
    listAt(holder, "attributes").map((one) => [
      stringAt(one, "key"),
      Object.values((at(one, "value") ?? {}) as object)[0],
    ]),
  );
}
