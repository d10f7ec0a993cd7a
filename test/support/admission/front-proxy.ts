import { type RequestOptions, request } from "node:https";
import { LiveFrontProxy } from "../../../src/admission/aggregated/front-proxy.ts";
import type { ReviewApi } from "../../../src/admission/aggregated/review-api.ts";
import type { Fact, Need } from "../../../src/core/decision/need.ts";
import type { Source } from "../../../src/core/evaluate/source.ts";
import { at, type JsonObject } from "../../../src/core/json.ts";
import { type Log, SILENT } from "../../../src/core/log.ts";
import type { KeyedCertificate } from "../../cluster/certificates/authority.ts";
import { BEHAVIOURS, type Got, testModule, testSource } from "./example-cluster.ts";

/** For tests of the aggregated API: the settings of a front proxy, a source that authorizes, and a client. */

export const API: ReviewApi = { group: "reviews.example.com", version: "v1", resource: "validatingreviews" };

export const REVIEWS = `/apis/${API.group}/v1/${API.resource}`;

/** The ConfigMap as kube-apiserver writes it. */
export function authenticationConfigMap(ca: string, data: Readonly<Record<string, string>> = {}): JsonObject {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { namespace: "kube-system", name: "extension-apiserver-authentication" },
    data: {
      "requestheader-client-ca-file": ca,
      "requestheader-allowed-names": '["front-proxy-client"]',
      "requestheader-username-headers": '["X-Remote-User"]',
      "requestheader-uid-headers": '["X-Remote-Uid"]',
      "requestheader-group-headers": '["X-Remote-Group"]',
      "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
      ...data,
    },
  };
}

export function frontProxy(configMap: JsonObject | undefined, log: Log = SILENT): LiveFrontProxy {
  const live = new LiveFrontProxy(log);
  live.offer(configMap);
  return live;
}

/** Reviews access: only the API server may do anything, and every user may read the paths of `system:discovery`. */
export function reviewed(asked: JsonObject[], changes: Partial<Source> = {}): Source {
  const { welcome, record } = BEHAVIOURS;
  const answer = (need: Need): Fact => {
    if (!("access" in need)) return { found: {}, complete: true };
    asked.push(need.access);
    const isDiscovery = at(need.access, "nonResourceAttributes", "verb") === "get";
    const allowed = isDiscovery || at(need.access, "user") === "system:apiserver";
    return { found: { allowed }, complete: true };
  };
  return testSource(
    { fetch: async (needs) => needs.map(answer), ...changes },
    testModule({ welcome, record }),
  );
}

export interface Call {
  readonly url: string;
  /** The CA of the server. */
  readonly ca: string | undefined;
  readonly client?: KeyedCertificate | undefined;
  readonly method?: string;
  /** Alternating names and values: names may be repeated. */
  readonly headers?: readonly string[];
  readonly body?: string | Buffer;
  readonly options?: RequestOptions;
}

export function call({
  url,
  ca,
  client,
  method = "GET",
  headers = [],
  body = "",
  options,
}: Call): Promise<Got> {
  const pair = client === undefined ? {} : { cert: client.certificate, key: client.key };
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      { method, agent: false, ca, ...pair, headers: [...headers, "Host", "x"], ...options } as RequestOptions,
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
        );
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}
