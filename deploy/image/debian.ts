// The layer of Debian's packages: their libraries, licences and records, and files that their installation scripts
// would have written.
import { spawnSync } from "node:child_process";
import { fromTar } from "./tar.ts";
import { Tree } from "./tree.ts";

/** Not a user of the system; the convention of images without a shell. */
export const USER = 65_532;

/** Libraries, and the loader; not the tables of character sets, which Node includes, nor scripts for debuggers. */
const LIBRARY = /^(?:usr\/)?(?:lib|lib64)\/(?:[\w-]+\/)?[\w.+-]+\.so(?:\.[\d.]+)?$/;
const SYSTEM = /^(?:etc\/debian_version|etc\/host\.conf|etc\/os-release|usr\/lib\/os-release)$/;
const LICENCE = /^usr\/share\/(?:doc\/[^/]+(?:\/copyright)?|common-licenses\/[^/]+)$/;
const AUTHORITY = /^usr\/share\/ca-certificates\/mozilla\/.*\.crt$/;

const AUTHORITIES = "etc/ssl/certs/ca-certificates.crt";

/** Scanners also read this format: a record of each package in a separate file. */
const RECORDS = "var/lib/dpkg/status.d";

const PASSWD = `root:x:0:0:root:/root:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
usher:x:${USER}:${USER}:usher:/home/usher:/usr/sbin/nologin
`;
const GROUP = `root:x:0:
nogroup:x:65534:
usher:x:${USER}:
`;

export async function debianTree(files: readonly string[]): Promise<Tree> {
  const tree = new Tree();
  for (const folder of ["bin", "sbin", "lib", "lib64"])
    tree.directory(`usr/${folder}`).symlink(folder, `usr/${folder}`);
  // Mount points of a runtime, and folders that programs may expect to be writable if mounted.
  for (const folder of ["dev", "proc", "sys", "run", "home/usher"]) tree.directory(folder);
  for (const folder of ["tmp", "var/tmp"]) tree.directory(folder, 0o1777);
  tree.symlink("var/run", "/run");
  tree.file("etc/passwd", PASSWD).file("etc/group", GROUP).file("etc/nsswitch.conf", "hosts: files dns\n");
  const authorities = new Map<string, Buffer>();
  for (const file of files) {
    for await (const { header, content } of fromTar(debMember(file, "--fsys-tarfile"))) {
      const path = header.name.replace(/^\.\//, "").replace(/\/$/, "");
      if (AUTHORITY.test(path)) authorities.set(path, content);
      if (![LIBRARY, SYSTEM, LICENCE].some((kept) => kept.test(path))) continue;
      if (header.type === "symlink") tree.symlink(path, header.linkname ?? "");
      else if (header.type === "file") tree.file(path, content, (header.mode ?? 0) & 0o111 ? 0o755 : 0o644);
    }
    await addRecord(tree, file);
  }
  const sorted = [...authorities].sort(([one], [other]) => (one < other ? -1 : 1));
  return tree.file(AUTHORITIES, Buffer.concat(sorted.map(([, certificate]) => certificate)));
}

async function addRecord(tree: Tree, file: string): Promise<void> {
  const members = new Map<string, Buffer>();
  for await (const { header, content } of fromTar(debMember(file, "--ctrl-tarfile")))
    members.set(header.name.replace(/^\.\//, ""), content);
  const control = members.get("control")?.toString("utf8") ?? "";
  const [, name] = /^Package: (.+)$/m.exec(control) ?? [];
  if (name === undefined) throw new Error(`${file} says of no package what it is`);
  tree.file(`${RECORDS}/${name}`, control.replace(/^Package: .+$/m, "$&\nStatus: install ok installed"));
  // Only of kept files: the record is that of this image.
  const sums = (members.get("md5sums")?.toString("utf8") ?? "").split("\n");
  const kept = sums.filter((line) => tree.get(line.slice(line.indexOf("  ") + 2)) !== undefined);
  tree.file(`${RECORDS}/${name}.md5sums`, kept.map((line) => `${line}\n`).join(""));
}

/** A part of a .deb as a plain tar, by Debian's own tool, which knows every compression that Debian uses. */
function debMember(file: string, part: "--fsys-tarfile" | "--ctrl-tarfile"): Buffer {
  const { status, stdout, stderr, error } = spawnSync("dpkg-deb", [part, file], { maxBuffer: 1 << 30 });
  if (status !== 0) throw new Error(`dpkg-deb can't read ${file}: ${error?.message ?? stderr}`);
  return stdout;
}
