import { checkDnsLabel } from "../../../core/kubernetes/names.ts";
import type { InputText } from "../../../core/module/command.ts";
import type { NamespaceOwnership, Ownerships } from "./backfill-command.ts";

const HEADER = "namespace,user";

/**
 * Lines of `namespace,user`. A namespace has no comma, so all that follows the first one is the user, LDAP names with commas included; both
 * may be in quotes. Nothing is trimmed: blanks are part of a name.
 */
export function readOwners({ name, text }: InputText): Ownerships {
  const found = new Map<string, NamespaceOwnership>();
  const errors: string[] = [];
  for (const [i, line] of text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .entries()) {
    if (line.trim() === "" || line.startsWith("#") || (i === 0 && line.trim() === HEADER)) continue;
    const comma = line.indexOf(",");
    const namespace = unquoted(comma < 0 ? line : line.slice(0, comma));
    const user = comma < 0 ? "" : unquoted(line.slice(comma + 1));
    const known = found.get(namespace);
    const wrong =
      user === ""
        ? "must be namespace,user"
        : (checkDnsLabel(namespace) ??
          (known === undefined || known.user === user ? undefined : `namespace ${namespace} has two users`));
    if (wrong === undefined) found.set(namespace, { namespace, user });
    else errors.push(`${name}:${i + 1}: ${wrong}`);
  }
  return { found: [...found.values()], errors };
}

function unquoted(text: string): string {
  return /^".*"$/s.test(text) ? text.slice(1, -1).replaceAll('""', '"') : text;
}
