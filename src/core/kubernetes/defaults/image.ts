/** A registry: a host name or an IPv6 address, perhaps with a port. */
const DOMAIN_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
const DOMAIN = `(?:${DOMAIN_PART}(?:\\.${DOMAIN_PART})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const PATH_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const REFERENCE = new RegExp(
  `^(?:${DOMAIN}/)?(?<path>${PATH_PART}(?:/${PATH_PART})*)(?::(?<tag>\\w[\\w.-]{0,127}))?(?:@(?<digest>.+))?$`,
);
const DIGEST = /^(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})$/;
const IMAGE_ID = /^[a-f0-9]{64}$/;
/** The image specification's limit for the name of a repository. */
const LONGEST_PATH = 255;

/**
 * The tag of an image reference: `latest` if it has neither tag nor digest, `undefined` for a digest alone or an
 * invalid reference.
 */
export function imageTag(image: string): string | undefined {
  if (IMAGE_ID.test(image)) return undefined;
  const { domain, rest } = splitDomain(image);
  const parts = REFERENCE.exec(`${domain}/${rest}`)?.groups;
  if (parts === undefined || (parts["path"] ?? "").length > LONGEST_PATH) return undefined;
  const { tag, digest } = parts;
  if (digest !== undefined && !DIGEST.test(digest)) return undefined;
  return tag ?? (digest === undefined ? "latest" : undefined);
}

/** The text before the first slash is a registry only if it has a dot, a port or a capital letter. */
function splitDomain(image: string): { domain: string; rest: string } {
  const slash = image.indexOf("/");
  if (slash === -1) return { domain: "docker.io", rest: `library/${image}` };
  const first = image.slice(0, slash);
  const isDomain = first === "localhost" || /[.:]/.test(first) || first !== first.toLowerCase();
  return isDomain ? { domain: first, rest: image.slice(slash + 1) } : { domain: "docker.io", rest: image };
}

/** Always for `latest`, explicit or implied; IfNotPresent for everything else, including an unreadable reference. */
export function defaultPullPolicy(image: string): "Always" | "IfNotPresent" {
  return imageTag(image) === "latest" ? "Always" : "IfNotPresent";
}
