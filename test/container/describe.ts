// How test files request the image.
import { beforeAll, describe } from "vitest";
import { ensureImage } from "./image.ts";
import { imageUnavailable } from "./programs.ts";

/** The first build downloads Node and Debian's packages. */
const FIRST_BUILD_MS = 20 * 60_000;

/**
 * Tests of the folder that `npm run image` fills. If it can't be built, test/cluster/global-setup.ts reports it after
 * the summary.
 */
export function describeImage(title: string, body: (image: () => string) => void): void {
  describe.skipIf(imageUnavailable() !== "")(title, () => {
    let image = "";
    beforeAll(async () => {
      image = await ensureImage();
    }, FIRST_BUILD_MS);
    body(() => image);
  });
}
