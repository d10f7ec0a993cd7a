import { isObject, stringAt } from "../../../core/json.ts";
import { CONTEXT, POD_CONTEXT } from "./cel.ts";
import type { CheckFailure, CheckInCel } from "./check.ts";
import { type CheckedPod, containerPath } from "./checked-pod.ts";
import { namesOf } from "./containers.ts";

export const IS_WINDOWS = 'object.spec.?os.?name.orValue("") == "windows"';

const USER_IN_CEL = [CONTEXT, POD_CONTEXT].reduceRight(
  (inherited, context) => `${context}.?windowsOptions.?runAsUserName.orValue(${inherited})`,
  '""',
);

/**
 * Checks of Windows pods beyond the Pod Security Standards, at level restricted. Off by default, so that the standards
 * stay unchanged.
 */
export const WINDOWS_CHECKS: readonly { readonly id: string; readonly cel: CheckInCel }[] = [
  {
    id: "windowsAdministrator",
    cel: { container: `${USER_IN_CEL}.lowerAscii() != "containeradministrator"` },
  },
  { id: "windowsUser", cel: { container: `${USER_IN_CEL} != ""` } },
];

const USER = ["windowsOptions", "runAsUserName"] as const;
const FIELD = `securityContext.${USER.join(".")}`;

/**
 * `windowsAdministrator`: no container may run as ContainerAdministrator, by its own setting or the pod's.
 * `windowsUser`: each names a user, because otherwise the image decides, and most images run as administrator.
 */
export function windowsFailures(pod: CheckedPod, mostCauses: number): CheckFailure[] {
  if (stringAt(pod.spec, "os", "name") !== "windows") return [];
  const inherited = stringAt(pod.context, ...USER) ?? "";
  const users = pod.contexts.map((context) =>
    isObject(context["windowsOptions"]) ? (stringAt(context, ...USER) ?? inherited) : inherited,
  );
  const where = (test: (user: string) => boolean): number[] =>
    users.flatMap((user, i) => (test(user) ? [i] : []));
  const failure = (
    check: string,
    reason: string,
    indexes: readonly number[],
    rule: string,
  ): CheckFailure[] =>
    indexes.length === 0
      ? []
      : [
          {
            check,
            reason,
            detail: `${indexes.length === 1 ? "container" : "containers"} ${namesOf(pod.containers, indexes)
              .map((name) => JSON.stringify(name))
              .join(", ")} ${rule}`,
            causes: indexes.slice(0, mostCauses).map((i) => ({
              path: containerPath(pod, i, "securityContext", ...USER),
              message: rule,
            })),
          },
        ];
  return [
    ...failure(
      "windowsAdministrator",
      "ContainerAdministrator",
      where((user) => user.toLowerCase() === "containeradministrator"),
      `must not set ${FIELD} to "ContainerAdministrator"`,
    ),
    ...failure(
      "windowsUser",
      "no Windows user",
      where((user) => user === ""),
      `must set ${FIELD}`,
    ),
  ];
}
