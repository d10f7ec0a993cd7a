// Ends the processes of the harness when the harness itself is gone, also by SIGKILL. A small shell in its own session
// holds the reading end of a pipe; when the last writer dies, the pipe ends, and the shell kills every registered
// process group and removes the data folder.
import { type ChildProcess, spawn } from "node:child_process";

const SCRIPT = `
groups=" "
tidy=no
while read -r verb group; do
  case $verb in
    add) groups="$groups$group " ;;
    drop) groups="\${groups%% $group *} \${groups#* $group }" ;;
    leave) tidy=yes ;;
  esac
done
[ $tidy = yes ] && exit 0
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
rm -rf -- "$1" || { sleep 1; rm -rf -- "$1"; }
`;

export class Watchdog {
  readonly #shell: ChildProcess;

  constructor(folder: string) {
    this.#shell = spawn("sh", ["-c", SCRIPT, "usher-cluster-watchdog", folder], {
      // Its own session: Ctrl-C in a terminal reaches every process of the group, and this one must survive.
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    // Neither the shell nor its pipe keep this process alive: the shell waits for its end.
    this.#shell.unref();
    this.#shell.stdin?.on("error", () => undefined);
    const pipe = this.#shell.stdin as (NodeJS.WritableStream & { unref?: () => void }) | null;
    pipe?.unref?.();
  }

  /** A process group to kill if this process dies. */
  add(group: number): void {
    this.#send(`add ${group}`);
  }

  /** The group has ended: its id may be reused soon. */
  drop(group: number): void {
    this.#send(`drop ${group}`);
  }

  /** Everything is cleaned up; resolves when the shell is gone. */
  async leave(): Promise<void> {
    const gone = new Promise((resolve) => this.#shell.once("exit", resolve));
    if (this.#shell.exitCode !== null) return;
    this.#shell.ref();
    this.#send("leave");
    this.#shell.stdin?.end();
    await gone;
  }

  #send(line: string): void {
    this.#shell.stdin?.write(`${line}\n`);
  }
}
