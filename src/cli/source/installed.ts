import { isNotFound, StatusError } from "../../cluster/client/api-response.ts";
import { DEFAULT_INSTALLATION } from "../../core/installation/installation.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { OWN_NAMES, VERSION_LABEL } from "../../core/registration/names.ts";
import { CONFIGURATION_FILE } from "../../core/registration/pods/restricted-pod.ts";
import { Objects } from "../../operator/install/apply.ts";
import { installedNamespaces } from "../../operator/install/installed-namespaces.ts";
import { type Configuration, configurationIn } from "../configuration/configuration.ts";
import { CallError, EXIT } from "../exit.ts";
import { version } from "../version.ts";
import { type ApiServerOptions, withApiServer } from "./api-server.ts";

export interface ReadInstalledOptions {
  readonly note: (text: string) => void;
  /** The action without permission to read it: `ask` ends the command, `default` continues with the defaults. */
  readonly forbidden: "ask" | "default";
}

/**
 * The configuration of the installation in a cluster, read with the user's own permissions, and named in one line: a
 * command must use the webhook's gates, modules and settings. If usher is not installed, the defaults apply.
 */
export async function installedConfiguration(
  options: ApiServerOptions,
  { note, forbidden }: ReadInstalledOptions,
): Promise<Configuration> {
  return withApiServer(options, note, async (client) => {
    note(`cluster ${client.server}`);
    const objects = new Objects(client);
    const found = await configMapOf(objects);
    if (found === "absent") {
      note(
        "usher is not installed in this cluster: the default configuration counts; --config names another",
      );
      return {};
    }
    if ("forbidden" in found) {
      const message = `you are not allowed to read ConfigMap ${found.forbidden}/${OWN_NAMES.configuration}, the configuration of the installed usher`;
      if (forbidden === "ask")
        throw new CallError(
          `${message}: ask an administrator for it, and pass it with --config`,
          EXIT.failed,
        );
      note(`${message}: the default configuration counts; --config names another`);
      return {};
    }
    const { namespace, object } = found;
    const label = `ConfigMap ${namespace}/${OWN_NAMES.configuration}`;
    const running = stringAt(object, "metadata", "labels", VERSION_LABEL);
    const other = running === undefined || running === version() ? "" : `; this program is ${version()}`;
    note(
      `installed usher${running === undefined ? "" : ` ${running}`}, configuration of ${namespace}${other}`,
    );
    const text = stringAt(object, "data", CONFIGURATION_FILE);
    try {
      return { ...(text === undefined ? {} : configurationIn(label, text)), namespace };
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      throw new CallError(
        `${error.message}\nthe installed configuration can't be used by this version of usher: pass one with --config`,
        error.code,
      );
    }
  });
}

type Found =
  | "absent"
  | { readonly forbidden: string }
  | { readonly namespace: string; readonly object: JsonObject };

/** In the namespace that usher's own cluster-scoped objects name, else in the default one. */
async function configMapOf(objects: Objects): Promise<Found> {
  const inDefault = await readIn(objects, DEFAULT_INSTALLATION.namespace);
  if (inDefault !== "absent" && !("forbidden" in inDefault)) return inDefault;
  let namespaces: readonly string[];
  try {
    namespaces = (await installedNamespaces(objects)).map(({ namespace }) => namespace);
  } catch (error) {
    // Without permission to read these either, only the default namespace is known.
    if (!isForbidden(error)) throw error;
    return inDefault;
  }
  let last: Found = "absent";
  for (const namespace of namespaces) {
    last = await readIn(objects, namespace);
    if (last !== "absent" && !("forbidden" in last)) return last;
  }
  return last;
}

async function readIn({ client }: Objects, namespace: string): Promise<Found> {
  const name = OWN_NAMES.configuration;
  const response = await client.request("GET", `/api/v1/namespaces/${namespace}/configmaps/${name}`);
  if (response.status === 200 && isObject(response.body)) return { namespace, object: response.body };
  if (isNotFound(response, name)) return "absent";
  if (response.status === 403) return { forbidden: namespace };
  throw new StatusError(`reading ConfigMap ${namespace}/${name}`, response);
}

function isForbidden(error: unknown): boolean {
  return error instanceof StatusError && error.status === 403;
}
