/**
 * The modules that can say what they would change: `usher MODULE plan`. Apart from the modules themselves, so that the command line knows
 * its commands without loading any.
 */
export const PREVIEWED = ["node-labels"] as const;
