import { expect, test } from "vitest";
import { authenticationConfigMap } from "../../../test/support/admission/front-proxy.ts";
import type { JsonObject } from "../../core/json.ts";
import { SILENT } from "../../core/log.ts";
import { makeCertificate } from "../tls/certificate.ts";
import { LiveFrontProxy, parseFrontProxy } from "./front-proxy.ts";

const { ca } = await makeCertificate(["x"]);

test("reads CA, names and headers", () => {
  expect(parseFrontProxy(authenticationConfigMap(`some text\n${ca}`))).toEqual({
    ca,
    names: ["front-proxy-client"],
    usernameHeaders: ["x-remote-user"],
    uidHeaders: ["x-remote-uid"],
    groupHeaders: ["x-remote-group"],
    extraHeaderPrefixes: ["x-remote-extra-"],
  });
});

test("an empty name list allows any name, and headers that older API servers lack are empty", () => {
  const data = { "requestheader-allowed-names": "[]", "requestheader-uid-headers": "" };
  expect(parseFrontProxy(authenticationConfigMap(ca, data))).toMatchObject({
    names: undefined,
    uidHeaders: [],
  });
});

test.each<[string, JsonObject | undefined, string]>([
  ["no ConfigMap", undefined, "does not exist"],
  ["nothing in it", {}, "--requestheader-client-ca-file"],
  ["no certificate", authenticationConfigMap("rubbish"), "--requestheader-client-ca-file"],
  [
    "names that are not a list",
    authenticationConfigMap(ca, { "requestheader-allowed-names": "front" }),
    "requestheader-allowed-names is not a JSON list",
  ],
  [
    "names that are not strings",
    authenticationConfigMap(ca, { "requestheader-allowed-names": "[1]" }),
    "requestheader-allowed-names is not a JSON list",
  ],
  [
    "no header for the user",
    authenticationConfigMap(ca, { "requestheader-username-headers": "[]" }),
    "username-headers",
  ],
])("%s: reports what is missing", (_what, configMap, says) => {
  const problem = parseFrontProxy(configMap);
  expect(problem).toContain(says);
  expect(problem).toContain("kube-system/extension-apiserver-authentication");
});

test("reports once what it waits for, keeps the last valid settings, and reports only new ones", () => {
  const lines: string[] = [];
  const log = {
    ...SILENT,
    warn: (facts: object, message: string) => lines.push(`${message} ${JSON.stringify(facts)}`),
  };
  const live = new LiveFrontProxy(log);
  const used: string[] = [];
  const follower = live.follow(({ ca: authority }) => used.push(authority));
  live.offer(undefined);
  live.offer(undefined);
  expect(live.current).toBeUndefined();
  expect(lines).toEqual([expect.stringContaining("no request can be authenticated")]);
  expect(lines[0]).toContain("does not exist");
  live.offer(authenticationConfigMap(ca));
  live.offer(authenticationConfigMap(ca));
  expect(used).toEqual([ca]);
  live.offer(undefined);
  expect(live.current?.ca).toBe(ca);
  expect(lines.at(-1)).toContain("the last valid settings stay in use");
  follower.stop();
  live.offer(authenticationConfigMap(ca, { "requestheader-allowed-names": "[]" }));
  expect(used).toHaveLength(1);
});
