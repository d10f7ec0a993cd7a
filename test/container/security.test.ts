import { describe, expect, test } from "vitest";
import { securityOf } from "./security.ts";

const USER = 65_532;

describe("a security context", () => {
  test("that is empty keeps the image's user and the runtime's capabilities", () => {
    const security = securityOf(undefined, undefined, USER);
    expect(security).toMatchObject({
      uid: USER,
      gid: USER,
      groups: [],
      readOnlyRoot: false,
      noNewPrivileges: false,
      seccomp: false,
    });
    expect(security.capabilities).toContain("NET_BIND_SERVICE");
  });

  test("of the container precedes the pod's", () => {
    const pod = { runAsUser: 1, runAsGroup: 2, fsGroup: 3, seccompProfile: { type: "RuntimeDefault" } };
    const container = { runAsUser: 4, seccompProfile: { type: "Unconfined" } };
    expect(securityOf(pod, container, USER)).toMatchObject({ uid: 4, gid: 2, groups: [3], seccomp: false });
  });

  test("with a user that the image does not know uses the root group", () => {
    expect(securityOf({ runAsUser: 1_000_680_000 }, {}, USER)).toMatchObject({ uid: 1_000_680_000, gid: 0 });
  });

  test("drops the named capabilities, or all", () => {
    const drop = (...names: string[]) => securityOf({}, { capabilities: { drop: names } }, USER).capabilities;
    expect(drop("ALL")).toEqual([]);
    expect(drop("CHOWN")).not.toContain("CHOWN");
    expect(drop("CHOWN")).toContain("KILL");
  });

  test("with runAsNonRoot refuses root", () => {
    expect(() => securityOf({ runAsNonRoot: true }, {}, 0)).toThrow("runAsNonRoot");
    expect(() => securityOf({ runAsNonRoot: true, runAsUser: 0 }, {}, USER)).toThrow("runAsNonRoot");
  });
});
