import { codesOf } from "../core/module/codes.ts";
import type { Code, Module } from "../core/module/module.ts";
import { didYouMean } from "../core/policy/suggest.ts";
import { CallError } from "./exit.ts";
import { wrap } from "./wrap.ts";

/** `USHER-P01`, and how people shorten it. */
const CODE = /^(?:usher[-_])?([a-z]\d{2,})$/i;

/** What `usher help USHER-P01` and `usher help codes` print; a topic that is neither is answered with what there is. */
export function explain(topic: string, commands: readonly string[], modules: readonly Module[]): string {
  const codes = codesOf(modules);
  if (topic === "codes") return codes.map(({ code, title }) => `${code}  ${title}`).join("\n");
  const [, short] = CODE.exec(topic) ?? [];
  if (short === undefined) {
    const topics = [...commands, "codes"];
    const hint = didYouMean(topic, topics) ?? `there are: ${topics.join(", ")}, and every error code`;
    throw new CallError(`there is no command ${topic}; ${hint}`);
  }
  const wanted = `USHER-${short.toUpperCase()}`;
  const found = codes.find(({ code }) => code === wanted);
  if (found !== undefined) return text(found);
  const known = codes.map(({ code, title }) => `  ${code}  ${title}`);
  throw new CallError(`there is no code ${wanted}; there are:\n${known.join("\n")}`);
}

function text({ code, title, meaning, remedy }: Code): string {
  return `${code}: ${title}\n\n${wrap(meaning)}\n\n${wrap(`What to do: ${remedy}`)}`;
}
