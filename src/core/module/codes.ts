import type { Code, Module } from "./module.ts";

/** Codes that no single module owns. */
export const CORE_CODES: readonly Code[] = [
  {
    code: "USHER-E01",
    title: "A module broke while it judged a request",
    meaning:
      "This is a fault in usher. The module's hook says what happens then: an open hook lets the request pass unchanged with a warning, a closed one refuses it.",
    remedy:
      "Look for the audit annotation ending in .fault and for the log line of the same moment, and report both. Until it is fixed, switch that module's hook off or exclude the object.",
  },
  {
    code: "USHER-E02",
    title: "No room for the note on what changed",
    meaning:
      "The annotations of an object may take 262,144 bytes together. This object has so many that the note on which policy changed what would exceed that, so it was left out. The change itself was made.",
    remedy: "Shorten the object's annotations if you want the note; nothing else depends on it.",
  },
  {
    code: "USHER-E03",
    title: "A record could not be written in time",
    meaning:
      "The request may only pass once usher has recorded it, and the record could not be written: too many others wrote at the same time, the API server did not answer, or the time ran out.",
    remedy:
      "Try again in a second. If it goes on, look at the API server's load and at usher's priority level.",
  },
  {
    code: "USHER-E04",
    title: "This policy is not valid",
    meaning:
      "A policy was written that breaks the rules of its kind; the message names each field and what is wrong with it.",
    remedy:
      "Correct the fields that are named. `usher review FILE --source DIR` checks a policy without a cluster.",
  },
  {
    code: "USHER-E05",
    title: "The object is too large to be judged",
    meaning:
      "The API server sent a review that usher does not parse, because it has too many bytes, takes too much memory or is nested too deep; the message says which, and the limit. A hook that may refuse what it reads refuses the request, whatever its failurePolicy; one that only adds something lets it pass with a warning.",
    remedy:
      "Make the object smaller: remove labels, annotations, list elements or managedFields. If the message says that other large requests take the memory, try again.",
  },
];

/** Every code that this set of modules can show. */
export function codesOf(modules: readonly Module[]): Code[] {
  return [...CORE_CODES, ...modules.flatMap(({ codes }) => codes ?? [])];
}
