import { describe, expect, test } from "vitest";
import { greeter } from "../../../test/conformance/modules.ts";
import type { Json } from "../../core/json.ts";
import type { ApiResponse, Client } from "./client.ts";
import { createResources, DiscoveryError, NotServedError } from "./discovery.ts";

/** An API server with discovery only. */
function server(answers: Readonly<Record<string, Json>>, asked: string[] = []): Client {
  return {
    server: "https://api.test",
    request: async (_method, path): Promise<ApiResponse> => {
      asked.push(path);
      const body = answers[path];
      if (typeof body === "number") return { status: body, headers: {}, body: undefined, text: "busy" };
      return { status: body === undefined ? 404 : 200, headers: {}, body, text: "" };
    },
    stream: () => Promise.reject(new Error("not asked for")),
    close: () => undefined,
  };
}

const APPS = {
  "/apis/apps": {
    preferredVersion: { version: "v1" },
    versions: [{ version: "v1beta1" }, { version: "v1" }],
  },
  "/apis/apps/v1": { resources: [{ name: "deployments", namespaced: true }] },
};

describe("the path", () => {
  test("of a declared resource needs no discovery", async () => {
    const asked: string[] = [];
    const resources = createResources(server({}, asked), [greeter]);
    expect(await resources.pathOf("configmaps")).toBe("/api/v1/configmaps");
    expect(await resources.pathOf("configmaps", "shop")).toBe("/api/v1/namespaces/shop/configmaps");
    expect(await resources.pathOf("configmaps", "shop", "a")).toBe("/api/v1/namespaces/shop/configmaps/a");
    const greetings = "/apis/conformance.usher.dev/v1/greetings";
    expect(await resources.pathOf("greetings.conformance.usher.dev", "", "p", "status")).toBe(
      `${greetings}/p/status`,
    );
    expect(asked).toEqual([]);
  });

  test("of another resource is discovered once, in the preferred version", async () => {
    const asked: string[] = [];
    const resources = createResources(server(APPS, asked), []);
    const path = "/apis/apps/v1/namespaces/shop/deployments/web";
    expect(await resources.pathOf("deployments.apps", "shop", "web")).toBe(path);
    expect(await resources.pathOf("deployments.apps", "shop", "web", "scale")).toBe(`${path}/scale`);
    expect(asked).toEqual(["/apis/apps", "/apis/apps/v1"]);
  });

  test("of an unserved resource is an error with its name, until it is served", async () => {
    const answers: Record<string, Json> = {};
    const resources = createResources(server(answers), []);
    const refused = await resources.pathOf("deployments.apps", "shop").catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(NotServedError);
    expect(String(refused)).toContain("deployments.apps is not served by https://api.test");
    Object.assign(answers, APPS);
    expect(await resources.pathOf("deployments.apps", "shop")).toBe(
      "/apis/apps/v1/namespaces/shop/deployments",
    );
  });

  test("a failed discovery does not mean that nothing is served", async () => {
    const resources = createResources(server({ "/apis/apps": 503 }), []);
    await expect(resources.discover("deployments.apps")).rejects.toThrow(DiscoveryError);
    await expect(resources.pathOf("deployments.apps")).rejects.toThrow("answered 503");
  });

  test.each(["a/b", "a%2Fb", "..", ".", "", "a\nb", "a\\b"])("the name %j is never sent", async (name) => {
    const resources = createResources(server({}), [greeter]);
    await expect(resources.pathOf("greetings.conformance.usher.dev", "", name)).rejects.toThrow(
      "invalid name",
    );
    await expect(resources.pathOf("configmaps", name || "/", "a")).rejects.toThrow("invalid namespace");
    await expect(resources.pathOf("configmaps", "a", "b", name)).rejects.toThrow("invalid subresource");
  });

  test("other special characters are escaped", async () => {
    const resources = createResources(server({}), [greeter]);
    expect(await resources.pathOf("greetings.conformance.usher.dev", "", "system:x?y#z")).toBe(
      "/apis/conformance.usher.dev/v1/greetings/system%3Ax%3Fy%23z",
    );
  });

  test("rejects a namespace of cluster-scoped resources, and its absence for namespaced ones", async () => {
    const resources = createResources(server({}), [greeter]);
    await expect(resources.pathOf("greetings.conformance.usher.dev", "shop", "p")).rejects.toThrow(
      "is cluster-scoped",
    );
    await expect(resources.pathOf("configmaps", undefined, "a")).rejects.toThrow("a namespace is required");
  });
});

describe("discovery", () => {
  test("uses the first declared version that is served", async () => {
    const [kind] = greeter.kinds;
    const [version] = kind?.versions ?? [];
    if (kind === undefined || version === undefined) throw new Error("the module has lost its kind");
    const versions = [
      { ...version, name: "v1beta1", storage: false },
      { ...version, name: "v2", storage: true },
    ];
    const modules = [{ ...greeter, kinds: [{ ...kind, versions }] }];
    const old = {
      "/apis/conformance.usher.dev/v1beta1": { resources: [{ name: "greetings", namespaced: false }] },
    };
    const name = "greetings.conformance.usher.dev";
    expect(await createResources(server(old), modules).discover(name)).toMatchObject({ version: "v1beta1" });
    const both = {
      ...old,
      "/apis/conformance.usher.dev/v2": { resources: [{ name: "greetings", namespaced: false }] },
    };
    expect(await createResources(server(both), modules).discover(name)).toMatchObject({ version: "v2" });
  });

  test("a group without the resource does not serve it", async () => {
    const without = { "/api/v1": { resources: [{ name: "pods", namespaced: true }] } };
    expect(await createResources(server(without), [greeter]).discover("configmaps")).toBeUndefined();
  });
});
