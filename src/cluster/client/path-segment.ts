/**
 * A name as one segment of a path. What the API server, or a proxy before it, could read as another path is refused, not escaped:
 * `users/a%2Fb` must never be taken for the user `a`, and `..` never leads out of a collection. Kubernetes itself allows no object
 * such a name.
 */
export function pathSegment(what: string, text: string): string {
  if (text === "" || text === "." || text === ".." || /[/%\\\p{Cc}]/u.test(text)) {
    throw new Error(
      `${JSON.stringify(text)} can't be a ${what} in Kubernetes: it must not be empty, "." or "..", nor have a slash, a backslash, a percent sign or a control character`,
    );
  }
  return encodeURIComponent(text);
}
