/**
 * A name as one segment of a path. Throws for what the API server, or a proxy, could read as another path, instead of escaping it:
 * `users/a%2Fb` must never mean the user `a`, and `..` must never leave a collection. Kubernetes allows no such object names.
 */
export function pathSegment(what: string, text: string): string {
  if (text === "" || text === "." || text === ".." || /[/%\\\p{Cc}]/u.test(text)) {
    throw new Error(
      `invalid ${what} ${JSON.stringify(text)}: must not be empty, "." or "..", nor contain slashes, backslashes, percent signs or control characters`,
    );
  }
  return encodeURIComponent(text);
}
