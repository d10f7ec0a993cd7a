import { createPrivateKey, X509Certificate } from "node:crypto";
import { type FSWatcher, watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { factsOf, type Log } from "../../core/log.ts";
import type { KeyPair } from "./certificate.ts";

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Certificate and key are two writes, and a mounted Secret is swapped in several steps: wait until all are done. */
const DEBOUNCE_MS = 200;

/** Not every file system reports changes. The kubelet updates a mounted Secret about once a minute. */
const POLL_MS = 10_000;

/** Reads and validates a pair. The error names the wrong file and the reason. */
export async function readKeyPair({ certFile, keyFile }: CertificateFiles): Promise<KeyPair> {
  // In sequence, so that the error names the same file if both are missing.
  const cert = await readText(certFile, "certificate");
  const key = await readText(keyFile, "key");
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(cert);
  } catch {
    throw new Error(`${certFile} holds no certificate in PEM form`);
  }
  let matches: boolean;
  try {
    matches = certificate.checkPrivateKey(createPrivateKey(key));
  } catch {
    throw new Error(`${keyFile} holds no private key in PEM form (a key with a passphrase can't be used)`);
  }
  if (!matches) throw new Error(`the key in ${keyFile} does not belong to the certificate in ${certFile}`);
  return { cert, key };
}

async function readText(file: string, what: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new Error(`can't read the ${what} ${file}: ${codeOf(error)}`);
  }
}

function codeOf(error: unknown): string {
  if (error instanceof Error && "code" in error) {
    if (error.code === "ENOENT") return "it does not exist";
    if (error.code === "EACCES") return "permission denied";
  }
  return error instanceof Error ? error.message : String(error);
}

export interface WatchOptions {
  readonly files: CertificateFiles;
  /** The pair in use. */
  readonly current: KeyPair;
  /** Uses a new pair; a throw keeps the old one. */
  readonly use: (pair: KeyPair) => void;
  readonly log: Log;
  readonly debounceMs?: number | undefined;
  readonly pollMs?: number | undefined;
}

/**
 * Reloads the files of a certificate when they change. The directories are watched, not the files: in a mounted Secret
 * the files are links into a directory that is itself a link, and only that one is ever swapped. An invalid pair is
 * reported once, and the old one stays in use.
 */
export function watchKeyPair(options: WatchOptions): { readonly stop: () => void } {
  const { files, use, log, debounceMs = DEBOUNCE_MS, pollMs = POLL_MS } = options;
  let current = options.current;
  let reported: string | undefined;
  let soon: NodeJS.Timeout | undefined;
  let stopped = false;

  const look = async () => {
    try {
      const pair = await readKeyPair(files);
      if (stopped) return;
      reported = undefined;
      if (pair.cert === current.cert && pair.key === current.key) return;
      use(pair);
      current = pair;
      log.info({ ...files, expires: new X509Certificate(pair.cert).validTo }, "reloaded serving certificate");
    } catch (error) {
      const facts = factsOf(error);
      if (stopped || facts.error === reported) return;
      reported = facts.error;
      log.warn(
        { error: facts.error },
        "reloading serving certificate failed: still serving the last valid one",
      );
    }
  };
  const noticed = () => {
    clearTimeout(soon);
    soon = setTimeout(look, debounceMs);
    soon.unref();
  };

  const every = setInterval(look, pollMs);
  every.unref();
  const watchers = [...new Set([dirname(files.certFile), dirname(files.keyFile)])].map((directory) =>
    watchDirectory(directory, noticed, log),
  );
  // A change between the first read and the watch would be missed.
  noticed();
  return {
    stop: () => {
      stopped = true;
      clearTimeout(soon);
      clearInterval(every);
      for (const watcher of watchers) watcher?.close();
    },
  };
}

/** Without a watcher polling still finds the change, only later. */
function watchDirectory(directory: string, noticed: () => void, log: Log): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: false }, noticed);
    watcher.on("error", (error) =>
      log.warn({ directory, error: error.message }, "can't watch for new certificates"),
    );
    return watcher;
  } catch (error) {
    log.warn({ directory, error: factsOf(error).error }, "can't watch for new certificates");
    return undefined;
  }
}
