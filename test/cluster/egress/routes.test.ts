import { expect, test } from "vitest";
import { address, Routes } from "./routes.ts";

test("an address is written as in a CONNECT request", () => {
  expect(address("10.96.0.1", 443)).toBe("10.96.0.1:443");
  expect(address("fd00::1", 443)).toBe("[fd00::1]:443");
});

test("a Service's addresses are used in turn; those without a route are skipped", () => {
  const routes = new Routes();
  routes.setServices(new Map([["svc:443", ["a:1", "b:1", "c:1"]]]));
  expect(routes.resolve("svc:443")).toBeUndefined();
  routes.set("a:1", 5001);
  routes.set("c:1", 5003);
  expect([1, 2, 3, 4].map(() => routes.resolve("svc:443"))).toEqual([5001, 5003, 5001, 5003]);
  routes.delete("a:1");
  expect(routes.resolve("svc:443")).toBe(5003);
  routes.setServices(new Map());
  expect(routes.resolve("svc:443")).toBeUndefined();
});

test("a route set by hand precedes the Service of that address", () => {
  const routes = new Routes();
  routes.set("a:1", 5001);
  routes.setServices(new Map([["svc:443", ["a:1"]]]));
  routes.set("svc:443", 6000);
  expect(routes.resolve("svc:443")).toBe(6000);
});
