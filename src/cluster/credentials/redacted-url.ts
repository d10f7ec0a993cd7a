/**
 * A URL for messages: without user, password and query. Works on the text, since what a message quotes is often not a valid URL;
 * removes everything before the last `@`.
 */
export function redactedUrl(url: string): string {
  const [, scheme = "", rest = ""] = /^([a-z][a-z0-9+.-]*:\/\/)?(?:.*@)?([^?#]*)/is.exec(url) ?? [];
  return scheme + rest;
}
