/** Most pods mention no OS at all, and there is nothing to say about them. */
function mentionsOS(pod: string): string {
  return [
    `has(${pod}.spec.os)`,
    `has(${pod}.spec.affinity)`,
    `has(${pod}.spec.runtimeClassName)`,
    `(has(${pod}.spec.nodeSelector) && ${pod}.spec.nodeSelector.exists(key, key.endsWith('kubernetes.io/os')))`,
    `(has(${pod}.metadata.labels) && 'kubernetes.io/os' in ${pod}.metadata.labels)`,
  ].join(" || ");
}

export const MENTIONS_OS = mentionsOS("object");

/**
 * The same of a pod template, before or after an update. Only of Kubernetes' own kinds is it known what stands at `spec.template`: about
 * others usher is asked, as a condition that fails lets everything pass.
 */
export const TEMPLATE_MENTIONS_OS = [
  "!(request.resource.group in ['', 'apps', 'batch']) || !has(object.spec) || !has(object.spec.template) || !has(object.spec.template.metadata)",
  mentionsOS("object.spec.template"),
  `(request.operation == 'UPDATE' && (${mentionsOS("oldObject.spec.template")}))`,
].join(" || ");
