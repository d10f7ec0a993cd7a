import type { Assembly } from "../evaluate/assembly.ts";

/** One thing that a module would change on an object that exists. */
export interface PreviewedChange {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  /** `label`, `taint` */
  readonly what: string;
  readonly change: "add" | "change" | "remove";
  readonly key: string;
  readonly from?: string;
  readonly to?: string;
  /** The policy, as `namespace/name`; absent where it is the module's own doing. */
  readonly by?: string;
}

/** What a module's reconciler would change, before anything is: `usher MODULE plan`. */
export type Preview = (assembly: Assembly) => Iterable<PreviewedChange>;
