import { binding } from "./binding.ts";
import { gate } from "./gate.ts";
import type { Handler } from "./handler.ts";
import { osContradictions } from "./os-contradictions.ts";
import { podSecurity } from "./pod-security.ts";
import { templates } from "./templates.ts";
import { write } from "./write.ts";

/** Every handler, in the order in which they run. */
export const HANDLERS: readonly Handler[] = [gate, write, osContradictions, podSecurity, templates, binding];
