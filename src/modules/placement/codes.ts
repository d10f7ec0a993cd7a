import type { Code } from "../../core/module.ts";

export const CODES: readonly Code[] = [
  {
    code: "USHER-P01",
    title: "Two say something different for one nodeSelector key",
    meaning:
      "A policy wants a nodeSelector key to have a value, and the object, or a policy that goes before, has set it to another. What was there first stays; only that key is skipped, the rest of the policy is applied.",
    remedy:
      "If the policy should win, take the key out of the object. Between two policies, give the one that should win a higher spec.priority.",
  },
  {
    code: "USHER-P02",
    title: "It can't be known whether a policy wants this object",
    meaning:
      "The policy selects namespaces by their labels, and the labels of this object's namespace are not known: the namespace does not exist yet, is not in the files, or could not be read in time.",
    remedy:
      "Offline, add the Namespace to the source directory. In a cluster, see whether the namespace exists and usher can read it. spec.failurePolicy of the policy says whether such objects pass (Ignore) or are refused (Fail).",
  },
  {
    code: "USHER-P03",
    title: "A policy that may want this object is not valid",
    meaning:
      "The policy has a part that can't be read, and its readable part selects this object. What happens follows spec.failurePolicy of that policy: Ignore lets the object pass without it, Fail refuses it. No other policy is touched.",
    remedy: "Correct the policy; `usher review FILE --source DIR` names each field that is wrong.",
  },
];
