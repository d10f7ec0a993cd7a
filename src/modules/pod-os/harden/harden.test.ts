import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyKey, jsonWith } from "../../../../test/builders/json.ts";
import { isObject, type Json, type JsonObject } from "../../../core/json.ts";
import { fieldPath } from "../../../core/path.ts";
import { hardenedFields } from "./harden.ts";

const named = (spec: JsonObject, os: string) => hardenedFields(spec, os).map(({ path }) => fieldPath(path));

const POD_FIELDS = ["securityContext.runAsNonRoot", "securityContext.seccompProfile"];
const APE = "containers[0].securityContext.allowPrivilegeEscalation";
const DROP = "containers[0].securityContext.capabilities.drop";
const WINDOWS = ["securityContext.runAsNonRoot", "securityContext.windowsOptions.runAsUserName"];

describe("fields that hardening fills in", () => {
  test.each<[string, string, JsonObject, string[]]>([
    ["linux", "a plain pod", { containers: [{}] }, [...POD_FIELDS, APE, DROP]],
    [
      "linux",
      "init containers too",
      { initContainers: [{}], containers: [{}] },
      [...POD_FIELDS, APE.replace("c", "initC"), APE, DROP.replace("c", "initC"), DROP],
    ],
    [
      "linux",
      "null is absent",
      { securityContext: null, containers: [{ securityContext: null }] },
      [...POD_FIELDS, APE, DROP],
    ],
    [
      "linux",
      "existing values stay, whatever they are",
      {
        securityContext: { runAsNonRoot: false, seccompProfile: { type: "Unconfined" } },
        containers: [{ securityContext: { allowPrivilegeEscalation: true, capabilities: { drop: [] } } }],
      },
      [],
    ],
    [
      "linux",
      "root by the pod",
      { securityContext: { runAsUser: 0 }, containers: [{}] },
      [POD_FIELDS[1] ?? "", APE, DROP],
    ],
    [
      "linux",
      "root by a container",
      { containers: [{ securityContext: { runAsUser: 0 } }] },
      [POD_FIELDS[1] ?? "", APE, DROP],
    ],
    [
      "linux",
      "root by an explicit container setting",
      { containers: [{ securityContext: { runAsUser: 0, runAsNonRoot: false } }] },
      [...POD_FIELDS, APE, DROP],
    ],
    [
      "linux",
      "a privileged container",
      { containers: [{ securityContext: { privileged: true } }] },
      POD_FIELDS,
    ],
    [
      "linux",
      "SYS_ADMIN",
      { containers: [{ securityContext: { capabilities: { add: ["CAP_SYS_ADMIN"] } } }] },
      POD_FIELDS,
    ],
    ["windows", "a plain pod", { containers: [{}] }, WINDOWS],
    [
      "windows",
      "an administrator",
      { containers: [{ securityContext: { windowsOptions: { runAsUserName: "containerADMINISTRATOR" } } }] },
      [WINDOWS[1] ?? ""],
    ],
    [
      "windows",
      "HostProcess",
      { securityContext: { windowsOptions: { hostProcess: true } }, containers: [{}] },
      [],
    ],
    [
      "windows",
      "a directory account",
      { securityContext: { windowsOptions: { gmsaCredentialSpecName: "web" } }, containers: [{}] },
      [WINDOWS[0] ?? ""],
    ],
    ["plan9", "an unknown OS", { containers: [{}] }, []],
  ])("%s: %s", (os, _name, spec, fields) => {
    expect(named(spec, os).sort()).toEqual([...fields].sort());
  });

  test("never throws, and is idempotent on filled-in fields, for any spec", () => {
    fc.assert(
      fc.property(jsonWith(anyKey), fc.constantFrom("linux", "windows"), (value: Json, os) => {
        const spec = isObject(value) ? value : { containers: value, securityContext: value };
        for (const { path } of hardenedFields(spec, os)) expect(path.length).toBeGreaterThan(1);
      }),
    );
  });
});
