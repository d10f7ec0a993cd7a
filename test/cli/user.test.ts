import { expect, test } from "vitest";
import { userInfoFor } from "../../src/core/review/review.ts";

test.each([
  ["jane", [], ["system:authenticated"]],
  ["jane", ["dev", "ops"], ["dev", "ops", "system:authenticated"]],
  ["jane", ["system:unauthenticated"], ["system:unauthenticated"]],
  ["system:anonymous", [], ["system:unauthenticated"]],
  [
    "system:serviceaccount:shop:robot",
    [],
    ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"],
  ],
  ["system:serviceaccount:shop:robot", ["dev"], ["dev", "system:authenticated"]],
])(
  "--as %s with groups %j has the groups %j, as with impersonation in the API server",
  (username, groups, all) => {
    expect(userInfoFor(username, groups)).toEqual({ username, groups: all });
  },
);
