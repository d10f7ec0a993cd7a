import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyKey, jsonObjectWith } from "../../test/builders/json.ts";
import { isObject, type Json } from "./json.ts";
import { atPointer, fieldPath, type Path, pointer, steps } from "./path.ts";

describe("pointer", () => {
  // RFC 6901, section 5.
  test.each<[Path, string]>([
    [[], ""],
    [["foo"], "/foo"],
    [["foo", 0], "/foo/0"],
    [[""], "/"],
    [["a/b"], "/a~1b"],
    [["c%d"], "/c%d"],
    [["m~n"], "/m~0n"],
    [["~1"], "/~01"],
    [["metadata", "annotations", "usher.dev/provenance"], "/metadata/annotations/usher.dev~1provenance"],
    [["__proto__"], "/__proto__"],
    [["", ""], "//"],
  ])("%j is %s", (path, text) => {
    expect(pointer(path)).toBe(text);
    expect(steps(text)).toEqual(path.map(String));
  });

  test("and steps undo each other for any keys", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(anyKey, fc.string({ unit: "binary" }), fc.nat(9))), (path) => {
        expect(steps(pointer(path))).toEqual(path.map(String));
      }),
    );
  });

  test("different places have different pointers", () => {
    const keys = fc.array(anyKey, { maxLength: 3 });
    fc.assert(
      fc.property(keys, keys, (a, b) => {
        expect(pointer(a) === pointer(b)).toBe(JSON.stringify(a) === JSON.stringify(b));
      }),
    );
  });
});

describe("atPointer", () => {
  test.each<[string, Json | undefined]>([
    ["/list/1/x", 2],
    ["/list/01", undefined],
    ["/list/-", undefined],
    ["/list/2", undefined],
    ["/list/1e0", undefined],
    ["/list/length", undefined],
    ["/object/0", "zero"],
    ["/text/0", undefined],
    ["/object/constructor", undefined],
    ["/object/__proto__", undefined],
  ])("%s", (text, expected) => {
    const value = { list: [{ x: 1 }, { x: 2 }], object: { "0": "zero" }, text: "abc" };
    expect(atPointer(value, text)).toEqual(expected);
  });

  test("finds every place of any object", () => {
    const check = (root: Json, here: Json | undefined, path: Path): void => {
      expect(atPointer(root, pointer(path))).toBe(here);
      if (Array.isArray(here)) for (const [i, inner] of here.entries()) check(root, inner, [...path, i]);
      else if (isObject(here)) for (const key of Object.keys(here)) check(root, here[key], [...path, key]);
    };
    fc.assert(fc.property(jsonObjectWith(anyKey), (value) => check(value, value, [])));
  });
});

test.each<[Path, string]>([
  [[], ""],
  [["spec", "containers", 0, "image"], "spec.containers[0].image"],
  [["metadata", "labels", "app.kubernetes.io/name"], "metadata.labels[app.kubernetes.io/name]"],
  [["spec", "nodeSelector", ""], "spec.nodeSelector[]"],
  [["spec", "nodeSelector", "disk-type_1"], "spec.nodeSelector.disk-type_1"],
  [[0], "[0]"],
])("fieldPath of %j is %s", (path, text) => {
  expect(fieldPath(path)).toBe(text);
});
