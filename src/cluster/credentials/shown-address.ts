/**
 * An address as it may stand in a message: without a name, a password and a query. By the text and not by its parts, for what is in a
 * message is often no address at all; so everything before the last `@` goes.
 */
export function shownAddress(address: string): string {
  const [, scheme = "", place = ""] = /^([a-z][a-z0-9+.-]*:\/\/)?(?:.*@)?([^?#]*)/is.exec(address) ?? [];
  return scheme + place;
}
