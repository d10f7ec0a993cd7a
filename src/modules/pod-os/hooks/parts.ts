import { binding } from "./binding.ts";
import { facts } from "./facts.ts";
import { gate } from "./gate.ts";
import type { Part } from "./part.ts";
import { podSecurity } from "./pod-security.ts";
import { templates } from "./templates.ts";
import { write } from "./write.ts";

/** Every part, in the order in which they run. */
export const PARTS: readonly Part[] = [gate, write, facts, podSecurity, templates, binding];
