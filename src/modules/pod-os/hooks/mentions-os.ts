/** Most pods mention no OS at all, and there is nothing to say about them. */
export const MENTIONS_OS = [
  "has(object.spec.os)",
  "has(object.spec.affinity)",
  "has(object.spec.runtimeClassName)",
  "(has(object.spec.nodeSelector) && object.spec.nodeSelector.exists(key, key.endsWith('kubernetes.io/os')))",
  "(has(object.metadata.labels) && 'kubernetes.io/os' in object.metadata.labels)",
].join(" || ");
