// The layer of Node: its binary and its licence. Headers, npm and manuals of the archive stay out.
import { gunzipSync } from "node:zlib";
import { fromTar } from "./tar.ts";
import { Tree } from "./tree.ts";

export const NODE = "usr/bin/node";

export async function nodeTree(archive: Buffer): Promise<Tree> {
  const tree = new Tree();
  for await (const { header, content } of fromTar(gunzipSync(archive))) {
    if (header.name === "package/bin/node") tree.file(NODE, content, 0o755);
    if (header.name === "package/LICENSE") tree.file("usr/share/doc/node/copyright", content);
  }
  if (tree.get(NODE) === undefined) throw new Error("the archive of Node has no bin/node");
  return tree;
}
