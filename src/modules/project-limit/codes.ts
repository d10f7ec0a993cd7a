import type { Code } from "../../core/module/module.ts";

export const CODES: readonly Code[] = [
  {
    code: "USHER-Q01",
    title: "The user has as many projects as allowed",
    meaning:
      "The ProjectRequestLimit named cluster allows this user, service account or system user a number of projects, and all places are occupied. The message has the maximum, the number that counts and the first ten names. Two terminating projects are forgiven.",
    remedy:
      "Delete a project that is not needed, or ask an administrator for a higher limit. `usher project-limit usage` shows who has how many.",
  },
  {
    code: "USHER-Q02",
    title: "There is no User object of this name",
    meaning:
      "Limits depend on labels of the User object, and there is none with the user's name: it logged in by a client certificate or an external token. Without the object it is not known which limit applies, so the request is refused, as OpenShift's own plugin does.",
    remedy:
      "Create the User object, list the user in `users` of a rule before the ones that need labels, or exempt the user in spec.exempt of the ProjectRequestLimit.",
  },
  {
    code: "USHER-Q03",
    title: "The limit of the user could not be found out",
    meaning:
      "The User object could not be read, because the API server refused or did not answer, or the ProjectRequestLimit is not valid. Which limit applies is not known.",
    remedy:
      "Try again. If it goes on, look at the conditions of the ProjectRequestLimit, at usher's log and at the health of the API server that serves users.",
  },
  {
    code: "USHER-Q04",
    title: "The requester of a namespace can't be chosen or changed",
    meaning:
      "The annotation openshift.io/requester says whose limit a namespace counts for. Usher sets it when the namespace is created, and only exempt users and trusted annotators may set or change it.",
    remedy:
      "Leave the annotation out. If it is missing, usher's mutating webhook was not reached, or another webhook removed it: try again. To create namespaces for others, ask an administrator to list your user in spec.trustedAnnotators of the ProjectRequestLimit.",
  },
  {
    code: "USHER-Q05",
    title: "The projects of the user can't be counted now",
    meaning:
      "With `count: Exact` a place is reserved in the user's ProjectUsage before a creation is admitted. It could not be read or written in time: too many creations at the same time, an API server that does not answer, or a usher that only serves and writes nothing.",
    remedy:
      "Try again in a second, as clients do by themselves. If it goes on, look at the API server's load, at usher's priority level and at usher's rights on projectusages.usher.dev.",
  },
];
