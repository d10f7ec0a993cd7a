import { binding } from "./binding.ts";
import { facts } from "./facts.ts";
import type { Part } from "./part.ts";
import { write } from "./write.ts";

/** Every part, in the order in which they run. */
export const PARTS: readonly Part[] = [write, facts, binding];
