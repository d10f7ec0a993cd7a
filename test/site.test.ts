import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const index = readFileSync(join(root, "docs/README.md"), "utf8");

describe("the index of the documents", () => {
  const pages = readdirSync(join(root, "docs")).filter(
    (name) => name.endsWith(".md") && name !== "README.md",
  );
  it.each(pages)("lists %s", (name) => expect(index).toContain(`](${name})`));

  const modules = readdirSync(join(root, "src/modules"), { withFileTypes: true }).filter((one) =>
    one.isDirectory(),
  );
  it.each(modules.map(({ name }) => name))("lists the README of module %s", (name) => {
    expect(index).toContain(`](../src/modules/${name}/README.md)`);
  });
});

describe("the site", () => {
  let output = "";
  let status: number | null = null;
  beforeAll(() => {
    const built = spawnSync(process.execPath, [join(root, "scripts/docs.mjs")], { encoding: "utf8" });
    output = `${built.stdout}${built.stderr}`;
    status = built.status;
  }, 600_000);

  it("builds, and has no link to a page or heading that does not exist", () => {
    expect(status, output).toBe(0);
  });

  it("finds pages without a server: the index of the search is among its files", () => {
    const chunks = readdirSync(join(root, "site/dist/assets/chunks"));
    const [file = ""] = chunks.filter((name) => name.startsWith("@localSearchIndexroot"));
    const text = readFileSync(join(root, "site/dist/assets/chunks", file), "utf8");
    for (const word of ["nodeselector", "projectrequestlimit", "restricted"]) expect(text).toContain(word);
  });

  it("shows each picture by day and by night", () => {
    const page = readFileSync(join(root, "site/dist/index.html"), "utf8");
    const pictures = [...page.matchAll(/class="by-(?:day|night)"[^>]* src="\/([^"]+)"/g)].map(
      ([, path = ""]) => path,
    );
    expect(pictures).toEqual(["images/way-of-a-pod.svg", "images/way-of-a-pod-dark.svg"]);
    for (const path of pictures) expect(existsSync(join(root, "site/dist", path)), path).toBe(true);
  });
});

describe.each(["pictures", "recording"])("docs/images", (script) => {
  it(`has what \`npm run ${script}\` draws`, () => {
    const images = join(root, "docs/images");
    const drawn = () =>
      Object.fromEntries(
        readdirSync(images)
          .filter((name) => name.endsWith(".svg"))
          .map((name) => [name, readFileSync(join(images, name), "utf8")]),
      );
    const before = drawn();
    expect(Object.keys(before)).toHaveLength(19);
    const { status, stderr } = spawnSync(process.execPath, [join(root, `scripts/${script}.mjs`)], {
      encoding: "utf8",
    });
    expect(status, stderr).toBe(0);
    expect(drawn()).toEqual(before);
  });
});
