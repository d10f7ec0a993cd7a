import { codesOf } from "../core/module/codes.ts";
import type { Code, Module } from "../core/module/module.ts";
import { didYouMean } from "../core/suggest.ts";
import { CallError } from "./exit.ts";
import { wrap } from "./wrap.ts";

/** `USHER-P01`, or short `P01`. */
const CODE = /^(?:usher[-_])?([a-z]\d{2,})$/i;

/** The output of `usher help USHER-P01` and `usher help codes`. An unknown topic is an error with suggestions. */
export function explain(topic: string, commands: readonly string[], modules: readonly Module[]): string {
  const codes = codesOf(modules);
  if (topic === "codes") return codes.map(({ code, title }) => `${code}  ${title}`).join("\n");
  const [, short] = CODE.exec(topic) ?? [];
  if (short === undefined) {
    const topics = [...commands, "codes"];
    const hint = didYouMean(topic, topics) ?? `known topics: ${topics.join(", ")} and error codes`;
    throw new CallError(`unknown command ${topic}; ${hint}`);
  }
  const wanted = `USHER-${short.toUpperCase()}`;
  const found = codes.find(({ code }) => code === wanted);
  if (found !== undefined) return text(found);
  // The letter is that of a module: its codes are what the reader looks for.
  const near = codes.filter(({ code }) => code.startsWith(wanted.slice(0, "USHER-P".length)));
  const known = near.map(({ code, title }) => `\n  ${code}  ${title}`).join("");
  throw new CallError(
    `unknown code ${wanted}; "usher help codes" lists all${known === "" ? "" : `, such as:${known}`}`,
  );
}

/** The error for a name that the command `path` does not have. */
export function unknownCommand(path: string, name: string, known: readonly string[]): CallError {
  const hint = didYouMean(name, known) ?? (known.length === 0 ? undefined : `known: ${known.join(", ")}`);
  return new CallError(`unknown command ${path} ${name}${hint === undefined ? "" : `; ${hint}`}`);
}

function text({ code, title, meaning, remedy }: Code): string {
  return `${code}: ${title}\n\n${wrap(meaning)}\n\n${wrap(`What to do: ${remedy}`)}`;
}
