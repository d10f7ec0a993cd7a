import type { Code } from "../../core/module/module.ts";

export const CODES: readonly Code[] = [];
