import type { Code } from "../core/module.ts";
import { didYouMean } from "../core/suggest.ts";
import { CallError } from "./exit.ts";

/** What `usher help USHER-P01` prints. */
export function explainCode(text: string, codes: readonly Code[]): string {
  const wanted = text.toUpperCase();
  const found = codes.find(({ code }) => code === wanted);
  if (found === undefined) {
    const known = codes.map(({ code }) => code);
    throw new CallError(
      `there is no code ${text}; ${didYouMean(wanted, known) ?? "the codes are:"}\n${codes.map(({ code, title }) => `  ${code}  ${title}`).join("\n")}`,
    );
  }
  return `${found.code}: ${found.title}\n\n${found.meaning}\n\nWhat to do: ${found.remedy}`;
}
