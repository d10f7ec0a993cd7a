import { readFile } from "node:fs/promises";

/** The token in a file. Rejects where it has none, as while it is being written: to be nobody is worse than to be late. */
export async function readToken(file: string): Promise<string> {
  const token = (await readFile(file, "utf8")).trim();
  if (token === "") throw new Error(`the token file ${file} is empty`);
  return token;
}
