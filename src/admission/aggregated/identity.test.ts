import { expect, test } from "vitest";
import { authenticationConfigMap, frontProxy } from "../../../test/support/admission/front-proxy.ts";
import { makeCertificate } from "../tls/certificate.ts";
import { identityOf } from "./identity.ts";

const { ca } = await makeCertificate(["x"]);
const settings = (data = {}) => {
  const { current } = frontProxy(authenticationConfigMap(ca, data));
  if (current === undefined) throw new Error("no settings");
  return current;
};

test("reads user, uid, groups and extra, each line separately", () => {
  const headers = {
    "x-remote-user": ["ann"],
    "x-remote-uid": ["7"],
    "x-remote-group": ["a, b", "system:authenticated"],
    "x-remote-extra-scopes": ["one", "two"],
    "x-remote-extra-example.com%2fteam": ["x"],
    "x-remote-extra-100%": ["raw"],
    "x-remote-extra-__proto__": ["polluted"],
    "x-remote-extra-": ["no key"],
    x_remote_group: ["system:masters"],
    "x-remote-groups": ["system:masters"],
  };
  expect(identityOf(headers, settings())).toEqual({
    username: "ann",
    uid: "7",
    groups: ["a, b", "system:authenticated"],
    extra: JSON.parse(
      '{"scopes":["one","two"],"example.com/team":["x"],"100%":["raw"],"__proto__":["polluted"]}',
    ),
  });
});

test("decodes names beyond ASCII as UTF-8, which Node reads as Latin-1", () => {
  const sent = Buffer.from("Jürgen 日本").toString("latin1");
  expect(identityOf({ "x-remote-user": [sent] }, settings())).toEqual({
    username: "Jürgen 日本",
    groups: ["system:authenticated"],
  });
  expect(identityOf({ "x-remote-user": ["\xff"] }, settings())).toContain("not UTF-8");
});

test("the first present header of the configured ones names the user", () => {
  const proxy = settings({ "requestheader-username-headers": '["X-Remote-User","X-Other-User"]' });
  expect(identityOf({ "x-other-user": ["b"] }, proxy)).toMatchObject({ username: "b" });
  expect(identityOf({ "x-other-user": ["b"], "x-remote-user": ["a"] }, proxy)).toMatchObject({
    username: "a",
  });
  expect(identityOf({ "x-other-user": ["b"] }, settings())).toContain("names no user");
});

test("without a header for groups the user has none", () => {
  const proxy = settings({ "requestheader-group-headers": "" });
  const headers = { "x-remote-user": ["a"], "x-remote-group": ["system:masters"] };
  expect(identityOf(headers, proxy)).toEqual({ username: "a", groups: ["system:authenticated"] });
});

test("every user is authenticated, except one whom the API server does not know", () => {
  const groupsOf = (user: string, ...groups: readonly string[]) => {
    const identity = identityOf({ "x-remote-user": [user], "x-remote-group": groups }, settings());
    return typeof identity === "string" ? identity : identity.groups;
  };
  expect(groupsOf("system:aggregator")).toEqual(["system:authenticated"]);
  expect(groupsOf("a", "system:authenticated", "b")).toEqual(["system:authenticated", "b"]);
  expect(groupsOf("system:anonymous", "system:unauthenticated")).toEqual(["system:unauthenticated"]);
  expect(groupsOf("system:anonymous")).toEqual([]);
});
