import { facts } from "./facts.ts";
import type { Part } from "./part.ts";

/** Every part, in the order in which they run. */
export const PARTS: readonly Part[] = [facts];
