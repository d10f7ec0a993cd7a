import type { Code, Module } from "./module.ts";

/** Codes that no single module owns. */
export const CORE_CODES: readonly Code[] = [
  {
    code: "USHER-E01",
    title: "A module failed while it evaluated a request",
    meaning:
      "This is a fault in usher. The failure mode of the module's hook decides: a fail-open hook lets the request pass unchanged with a warning, a fail-closed one refuses it.",
    remedy:
      "Look for the audit annotation ending in .fault and for the log line at the same time, and report both. Until it is fixed, switch that module's hook off or exclude the object.",
  },
  {
    code: "USHER-E02",
    title: "Provenance annotation omitted",
    meaning:
      "The annotations of an object may take 262,144 bytes together. The provenance annotation would exceed that, so it was left out. The change itself was made.",
    remedy:
      "Shorten the object's annotations if you want the provenance annotation; nothing else depends on it.",
  },
  {
    code: "USHER-E03",
    title: "A record could not be written in time",
    meaning:
      "The request may pass only after usher has recorded it, and the record could not be written: too many concurrent writes, no response of the API server, or the deadline was exceeded.",
    remedy:
      "Try again in a second. If it persists, look at the API server's load and at usher's priority level.",
  },
  {
    code: "USHER-E04",
    title: "This policy is not valid",
    meaning: "A written policy violates the rules of its kind; the message names each field and its problem.",
    remedy:
      "Correct the fields that are named. `usher review FILE --source DIR` checks a policy without a cluster.",
  },
  {
    code: "USHER-E05",
    title: "The object is too large to be evaluated",
    meaning:
      "The API server sent a review that usher does not parse, because it has too many bytes, takes too much memory or is nested too deeply; the message has the reason and the limit. A hook that may refuse refuses the request, regardless of its failurePolicy; one that only adds fields lets it pass with a warning.",
    remedy:
      "Make the object smaller: remove labels, annotations, list elements or managedFields. If the message says that other large requests take the memory, try again.",
  },
  {
    code: "USHER-E10",
    title: "The file can't be read",
    meaning:
      "The text is not YAML or JSON that kubectl reads, or a document in it is not an object of Kubernetes. Nothing of that document counts.",
    remedy: "Correct the text at the line and column that the message names.",
  },
  {
    code: "USHER-E11",
    title: "Unknown field",
    meaning:
      "The kind does not have this field. An API server drops it, or refuses the object where the client asks for strict validation, as kubectl does.",
    remedy:
      "Correct the spelling, or remove the field. `usher schema KIND` lists the fields of a kind; `usher lint --fix` corrects upper and lower case.",
  },
  {
    code: "USHER-E12",
    title: "Has no effect",
    meaning:
      "The policy, or the part of it that the message names, is valid and does nothing: nothing selects by it, or usher ignores it here.",
    remedy: "Remove it, or add the part that is missing; the message names it.",
  },
  {
    code: "USHER-E13",
    title: "The selector can match nothing",
    meaning:
      "No object can meet all requirements of the selector at once, for instance one label with two values, or it is absent and so selects nothing.",
    remedy: "Correct the requirements. An empty selector, {}, selects everything.",
  },
  {
    code: "USHER-E14",
    title: "The rule can never count",
    meaning:
      "Another rule or policy comes first and takes everything that this one is for. It is never used, whatever the request.",
    remedy:
      "Remove it, narrow the one that comes first, or change their order: by spec.priority where the kind has it, else by their place in the list.",
  },
  {
    code: "USHER-E15",
    title: "Two policies contradict each other",
    meaning:
      "Both select the same objects with the same priority and want different values. One of them wins by its kind or name, and that part of the other is skipped.",
    remedy: "Give the one that should win a higher spec.priority, or make their selectors disjoint.",
  },
  {
    code: "USHER-E16",
    title: "Deprecated spelling",
    meaning: "Usher still reads this version or field. A later release may not.",
    remedy: "Write it as the message says; `usher lint --fix` does so.",
  },
  {
    code: "USHER-E17",
    title: "The object is defined twice",
    meaning:
      "Two places define an object of the same kind, namespace and name. In files usher uses the first one; kubectl apply would let the last one win.",
    remedy: "Remove one of them.",
  },
  {
    code: "USHER-E18",
    title: "May not do what its author expects",
    meaning:
      "The object is valid, and usher does as it says. The message names a consequence that is easily overlooked.",
    remedy: "Change it where the consequence is not meant.",
  },
];

/** Every code that this set of modules can show. */
export function codesOf(modules: readonly Module[]): Code[] {
  return [...CORE_CODES, ...modules.flatMap(({ codes }) => codes ?? [])];
}
