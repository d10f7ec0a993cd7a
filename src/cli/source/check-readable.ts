import type { Client } from "../../cluster/client/client.ts";
import { createResources } from "../../cluster/client/discovery.ts";
import { watchedResources } from "../../cluster/informers/watched-resources.ts";
import type { Assembly } from "../../core/evaluate/assembly.ts";
import { CallError, EXIT } from "../exit.ts";

/**
 * Fails where a resource that modules need can't be listed. An informer cache would retry forever, as a replica must; a user at a prompt
 * would see nothing. `hint` says what to do without the right.
 */
export async function checkReadable(
  client: Client,
  { modules, gates }: Pick<Assembly, "modules" | "gates">,
  options: { readonly leaderReads?: boolean; readonly hint?: string | undefined } = {},
): Promise<void> {
  const { leaderReads = false, hint = "ask an administrator for the permission" } = options;
  const resources = createResources(client, modules);
  for (const { resource, required, leaderOnly } of watchedResources(modules, gates)) {
    if (!required || (leaderOnly && !leaderReads)) continue;
    const { status } = await client.request("GET", `${await resources.pathOf(resource)}?limit=1`);
    if (status === 403)
      throw new CallError(
        `you are not allowed to list ${resource}, which policies need; ${hint}`,
        EXIT.failed,
      );
    if (status === 404)
      throw new CallError(`${client.server} does not serve ${resource}: is usher installed?`, EXIT.failed);
    if (status >= 400)
      throw new CallError(`list ${resource}: the API server returned ${status}`, EXIT.failed);
  }
}
