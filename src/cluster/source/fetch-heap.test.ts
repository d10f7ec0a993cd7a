import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { portOf, useHttpFixture } from "../../../test/support/cluster/http-fixture.ts";
import type { Json } from "../../core/json.ts";

const fixture = useHttpFixture();
const READER = fileURLToPath(new URL("../../../test/support/cluster/list-reader.ts", import.meta.url));

/** The heap of a replica in a container of 512 MiB, minus the maximum size of its view. */
const HEAP_MB = 192;

const COUNT = 22;

/** The shape that takes the most memory once parsed: 27 MB. */
const EMPTY = Array.from({ length: 427_000 }, () => ({}));

/** Objects of 1.28 MB each, by the field that makes them large. */
const OBJECTS: Readonly<Record<string, (i: number) => Json>> = {
  managedFields: (i) => ({ metadata: { name: `o${i}`, managedFields: EMPTY } }),
  spec: (i) => ({ metadata: { name: `o${i}` }, spec: EMPTY }),
};

test.each(Object.keys(OBJECTS))(
  "lists of objects with 1.28 MB of %s are read within the heap",
  {
    timeout: 120_000,
  },
  async (shape) => {
    const objects = Array.from({ length: COUNT }, (_, i) => JSON.stringify(OBJECTS[shape]?.(i)));
    fixture.handler = (request, response) => {
      const { searchParams } = new URL(request.url ?? "", "http://localhost");
      const from = Number(searchParams.get("continue") ?? 0);
      const to = from + Number(searchParams.get("limit") ?? COUNT);
      const metadata = JSON.stringify(to < COUNT ? { continue: String(to) } : {});
      response.writeHead(200, { "content-type": "application/json" });
      response.end(
        `{"kind":"ThingList","apiVersion":"v1","metadata":${metadata},"items":[${objects.slice(from, to)}]}`,
      );
    };
    const url = `http://127.0.0.1:${portOf(fixture.server)}`;
    const { stdout } = await promisify(execFile)(process.execPath, [
      `--max-old-space-size=${HEAP_MB}`,
      READER,
      url,
    ]);
    const { scanned, previewed } = JSON.parse(stdout);
    expect(scanned).toBe(COUNT);
    // Managed fields are dropped as they are read. Of kept objects, as many as fit.
    if (shape === "managedFields") expect(previewed).toEqual(Array(3).fill(COUNT));
    else expect(Math.max(...previewed)).toBeGreaterThan(0);
  },
);
