/** Banned words and phrases, each with its replacement. A phrase is a sequence of words: `eventBook` is "event book". */
export type Words = Readonly<Record<string, string>>;

/** Banned everywhere, comments and tests included. */
export const METAPHORS: Words = {
  aftermath: "say what follows: effects, cleanup",
  "sparing, sparingly": "exempt, sampled",
  "stranger, strangers": "unmanaged objects",
  leavings: "cleanup",
  "telling, tellings": "event, finding",
  whereabouts: "location, path",
  "farewell, goodbye": "draining, shutdown",
  crowd: "load, many clients",
  "quarrel, quarrels, quarreled": "conflict",
  "wish, wishes, wished": "placement request",
  "survey, surveys, surveyed": "drift scan",
  "mend, mends, mended, mending": "repair, fix",
  heart: "core",
  birth: "creation, mutate-node",
  patience: "deadline, timeout",
  intake: "view updater",
  "lane, lanes": "commit batcher",
  "planner, planners": "reconciler",
  "event book, event books": "event recorder, event correlator",
  "give back, gives back, giving back, given back": "return, restore",
  "keep right, keeps right, kept right, keeping right": "reconcile, maintain",
  passage: "AdmissionResponse",
  whoever: "name the subject",
};

/** Banned in identifiers, file names and user-facing text. */
export const WORDS: Words = {
  "tell, tells, told": "report, say, distinguish",
  "lacks, lacking": "unmet requirements, has no",
  taken: "stored, used, removed",
  effort: "work budget",
  holding: "controller, reconciler",
  "book, books": "index, counts, recorder",
  foreign: "ownership conflict, unmanaged",
  "quiet, quietly": "exempt, stable",
  "caution, cautions": "problem of severity warning",
  "doubt, doubts": "warning, unknown",
  "demand, demands, demanding, demanded": "enforcement, requirement",
  "settle, settles, settling, settled": "finish, stable, wait for",
  "saying, sayings": "message",
};

/** Banned in user-facing text. */
export const IN_TEXT: Words = {
  "be it": "whether, even if",
  "no more": "no longer",
  "nobody, somebody": "name the subject",
  "the first stays": "kept …; policy … wants …",
  "skipped part": "partly",
  "policies of now": "current policies",
  "what is the matter with it": "latest observations of the object's state",
  "say something different": "conflict",
  "stands here twice, stand here twice": "duplicate",
  "must be a text": "must be a string",
  "is no object": "must be an object",
  "broke usher": "internal error",
  "leading no longer": "stopped leading",
  "in his namespace": "in the namespace",
  "where does it sit": "where does it run",
};

/** Legitimate uses, each with its reason. `file`: only there. */
export const ALLOWED: readonly {
  readonly phrase: string;
  readonly file?: string;
  readonly reason: string;
}[] = [
  { phrase: "all settled", reason: "Promise.allSettled" },
  { phrase: "best effort", reason: "BestEffort, a value of a field, as Kubernetes' own quality of service" },
  {
    phrase: "settle",
    file: "src/modules/project-limit/",
    reason: "a reservation is settled: confirmed or released",
  },
  {
    phrase: "settled",
    file: "src/modules/project-limit/",
    reason: "a reservation is settled: confirmed or released",
  },
  {
    phrase: "settles",
    file: "src/modules/project-limit/",
    reason: "a reservation is settled: confirmed or released",
  },
  { phrase: "no more than", reason: "a bound, as in plain English" },
  { phrase: "q quiet", reason: "the flag -q, --quiet, as in git and docker" },
  { phrase: "quiet", file: "src/cli/", reason: "the option of the flag --quiet" },
  { phrase: "placement demand", file: "CHANGELOG.md", reason: "the old name of a hook" },
  { phrase: "placement lacking", file: "CHANGELOG.md", reason: "the old name of an event reason" },
  { phrase: "leave foreign", file: "CHANGELOG.md", reason: "the old name of a flag" },
  { phrase: "placement mend", file: "CHANGELOG.md", reason: "the old name of a setting" },
  { phrase: "settled", file: "CHANGELOG.md", reason: "the old name of a library field" },
  { phrase: "skipped part", file: "CHANGELOG.md", reason: "an old value of the JSON output" },
];
