/** Values of a module's part of the dashboard that the page shows as they are. Types only, for a browser too. */

/** How the page colours something. `plain`: worth a colour, without a judgement. `none`: nothing to say. */
export type Tone = "good" | "warning" | "bad" | "plain" | "none";

/** `3 pods`, `2 nodes` */
export interface ObjectCount {
  readonly count: number;
  /** In the plural: `nodes`. */
  readonly noun: string;
}
