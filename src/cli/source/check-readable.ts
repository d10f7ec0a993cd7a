import type { Client } from "../../cluster/client/client.ts";
import { createResources } from "../../cluster/client/discovery.ts";
import { watchedResources } from "../../cluster/informers/watched-resources.ts";
import type { Declarations } from "../../core/module/module.ts";
import { CallError, EXIT } from "../exit.ts";

/**
 * Fails where a resource that modules need can't be listed. An informer cache would retry forever, as a replica must; a user at a prompt
 * would see nothing. `hint` says what to do without the right.
 */
export async function checkReadable(
  client: Client,
  declarations: Declarations,
  options: {
    readonly leaderReads?: boolean;
    readonly hint?: string | undefined;
    readonly owns?: (resource: string) => boolean;
  } = {},
): Promise<void> {
  const { leaderReads = false, hint = "ask an administrator for the permission", owns } = options;
  const resources = createResources(client, declarations.modules);
  for (const { resource, required, leaderOnly } of watchedResources(declarations)) {
    if (!required || (leaderOnly && !leaderReads) || owns?.(resource) === false) continue;
    const { status } = await client.request("GET", `${await resources.pathOf(resource)}?limit=1`);
    if (status === 403)
      throw new CallError(
        `you are not allowed to list ${resource}, which policies need; ${hint}`,
        EXIT.failed,
      );
    if (status === 404)
      throw new CallError(
        `${client.server} does not serve ${resource}: is usher installed? Policies of files are reviewed on this cluster with --source and --cluster`,
        EXIT.failed,
      );
    if (status >= 400)
      throw new CallError(`list ${resource}: the API server returned ${status}`, EXIT.failed);
  }
}
