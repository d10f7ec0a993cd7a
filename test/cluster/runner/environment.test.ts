import { expect, test } from "vitest";
import { expand } from "./environment.ts";
import { imageName } from "./program.ts";

test("$(NAME) is replaced as a kubelet does it", () => {
  const values = new Map([["NAME", "usher"]]);
  expect(expand("hello $(NAME)", values)).toBe("hello usher");
  expect(expand("$(UNKNOWN) $NAME", values)).toBe("$(UNKNOWN) $NAME");
  expect(expand("$$(NAME)", values)).toBe("$(NAME)");
});

test.each([
  ["usher", "usher"],
  ["usher:v1", "usher"],
  ["registry.example:5000/team/usher:v1@sha256:00", "usher"],
])("%s starts what is known for %s", (image, name) => {
  expect(imageName(image)).toBe(name);
});
