import fc from "fast-check";
import { expect, test } from "vitest";
import { locateProblems, readManifests } from "../reader/read-documents.ts";
import { codeFrame, LineIndex, positionAt } from "./code-frame.ts";

const POLICY = `apiVersion: v1
spec:
  tolerations:
    - key: dedicated
      operator: Exist
`;

test("a problem is shown with the line before it, and carets under it", () => {
  const start = POLICY.indexOf("Exist");
  expect(codeFrame(POLICY, { start, end: start + 5 }, 'did you mean "Exists"?')).toBe(
    [
      "   4 |     - key: dedicated",
      "   5 |       operator: Exist",
      '     |                 ^^^^^ did you mean "Exists"?',
    ].join("\n"),
  );
});

test("positions count from one, also at the end and behind it", () => {
  expect(positionAt("ab\ncd", 0)).toEqual({ line: 1, column: 1 });
  expect(positionAt("ab\ncd", 3)).toEqual({ line: 2, column: 1 });
  expect(positionAt("ab\ncd", 99)).toEqual({ line: 2, column: 3 });
  expect(positionAt("", 0)).toEqual({ line: 1, column: 1 });
});

test("every offset is in the line that a scan finds", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "\n", "\r", "ü") });
  fc.assert(
    fc.property(text, (one) => {
      const lines = new LineIndex(one);
      for (let offset = 0; offset <= one.length; offset++)
        expect(lines.lineAt(offset)).toBe(positionAt(one, offset).line);
    }),
  );
});

test("the first line has no line before it, and a caret is always shown", () => {
  expect(codeFrame("a: 1\n", { start: 3, end: 3 })).toBe("   1 | a: 1\n     |    ^");
  expect(codeFrame("", { start: 0, end: 1 })).toBe("   1 |\n     | ^");
});

test("long lines are cut around the problem, and terminal control characters are removed", () => {
  const text = `${"x".repeat(300)}\u001b[31mBAD${"y".repeat(300)}`;
  const start = text.indexOf("BAD");
  const frame = codeFrame(text, { start, end: start + 3 });
  expect(frame).not.toContain("\u001b");
  const [line = "", carets = ""] = frame.split("\n");
  expect(line.length).toBeLessThan(120);
  expect(line.slice(carets.indexOf("^"), carets.lastIndexOf("^") + 1)).toBe("BAD");
});

test("marks the value if the message quotes it, else the key, else the parent's key", () => {
  const { manifests } = readManifests(POLICY);
  const document = manifests[0]?.document ?? -1;
  const path = ["spec", "tolerations", 0, "operator"];
  const places = locateProblems(POLICY, [
    { document, path, message: '"Exist" is not an operator' },
    { document, path, message: "unknown field" },
    { document, path: ["metadata", "name"], message: "is missing" },
    { document, path: ["spec", "tolerations", 0, "value"], message: "is missing" },
    { document: 7, path, message: "is missing" },
  ]);
  expect(places.map((place) => place && [place.line, place.column])).toEqual([
    [5, 17],
    [5, 7],
    [1, 1],
    [4, 7],
    undefined,
  ]);
});

test("lists are flattened, and items of typed lists get their kind", () => {
  const { manifests, problems } = readManifests(
    `kind: List\napiVersion: v1\nitems:\n- {kind: Node, apiVersion: v1}\n- kind: NodeList\n  apiVersion: v1\n  items: [{metadata: {name: n1}}]\n---\na: "\n`,
  );
  expect(manifests.map(({ path, value }) => [path, value])).toEqual([
    [["items", 0], { kind: "Node", apiVersion: "v1" }],
    [["items", 1, "items", 0], { kind: "Node", apiVersion: "v1", metadata: { name: "n1" } }],
  ]);
  expect(problems).toMatchObject([{ line: 9 }]);
});
