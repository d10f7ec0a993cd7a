/** Fields that the API server forbids by the OS of a pod, in the order of its errors. */

/** Below `securityContext` of a Windows pod. An empty list of sysctls passes, an empty one of groups does not. */
export const WINDOWS_POD_CONTEXT = [
  "appArmorProfile",
  "seLinuxOptions",
  "seccompProfile",
  "fsGroup",
  "fsGroupChangePolicy",
  "sysctls",
  "runAsUser",
  "runAsGroup",
  "supplementalGroups",
  "supplementalGroupsPolicy",
  "seLinuxChangePolicy",
] as const;

/** In the spec of a Windows pod. `hostPID` and `hostIPC` only if true, the others with any value. */
export const WINDOWS_POD = ["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"] as const;

/** Below `securityContext` of each container of a Windows pod. */
export const WINDOWS_CONTAINER_CONTEXT = [
  "appArmorProfile",
  "seLinuxOptions",
  "seccompProfile",
  "capabilities",
  "readOnlyRootFilesystem",
  "privileged",
  "allowPrivilegeEscalation",
  "procMount",
  "runAsUser",
  "runAsGroup",
] as const;

/** Below `securityContext` of a Linux pod and of each of its containers. */
export const LINUX_CONTEXT = ["windowsOptions"] as const;

/** In the order in which API validation visits them. */
export const CONTAINER_LISTS = ["initContainers", "containers", "ephemeralContainers"] as const;

export const WINDOWS_DETAIL = "cannot be set for a windows pod";
export const LINUX_DETAIL = "windows options cannot be set for a linux pod";
export const RESOURCES_DETAIL = "may not be set for a windows pod";
