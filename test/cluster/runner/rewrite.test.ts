import { describe, expect, test } from "vitest";
import { rewrite } from "./rewrite.ts";

const paths = new Map([
  ["/etc/usher", "/run/root/etc/usher"],
  ["/etc/usher/tls", "/run/root/etc/usher/tls"],
]);
const ports = new Map([[8443, 50001]]);

describe("files and ports in a container's command", () => {
  test.each([
    ["/etc/usher", "/run/root/etc/usher"],
    ["--config=/etc/usher/config.yaml", "--config=/run/root/etc/usher/config.yaml"],
    ["/etc/usher/tls/tls.crt:/etc/usher/a", "/run/root/etc/usher/tls/tls.crt:/run/root/etc/usher/a"],
    ["readFileSync('/etc/usher/x')", "readFileSync('/run/root/etc/usher/x')"],
    ["/etc/usher-other", "/etc/usher-other"],
    ["/backup/etc/usher", "/backup/etc/usher"],
    ["8443", "50001"],
    ["--port=8443", "--port=50001"],
    [":8443", "127.0.0.1:50001"],
    ["--listen=0.0.0.0:8443", "--listen=127.0.0.1:50001"],
    ["[::]:8443", "127.0.0.1:50001"],
    ["--bind=0.0.0.0", "--bind=127.0.0.1"],
    ["::", "127.0.0.1"],
    ["std::", "std::"],
    ["https://localhost:8443/readyz", "https://localhost:50001/readyz"],
    ["18443", "18443"],
    ["--count=84430", "--count=84430"],
    [":84430", ":84430"],
    ["--port=9443", "--port=9443"],
  ])("%s becomes %s", (text, expected) => {
    expect(rewrite(text, paths, ports)).toBe(expected);
  });

  test("nothing is rewritten without declared mounts and ports", () => {
    expect(rewrite("--listen=:8443 /etc/usher", new Map(), new Map())).toBe("--listen=:8443 /etc/usher");
  });
});
