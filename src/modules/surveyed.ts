/**
 * The modules that declare a survey, so that the command line can offer their commands in its help without loading a single module. A test
 * holds it equal to what they declare.
 */
export const SURVEYED = ["placement"] as const;
