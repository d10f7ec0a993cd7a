/** A reference to immutable content: `registry.example.com/usher@sha256:…`, without a tag. */
const BY_DIGEST = /^[a-z0-9]+(?:[._:/-][a-z0-9]+)*@sha256:[0-9a-f]{64}$/;

/**
 * The image, if it is named only by its digest. A mirror of a disconnected cluster knows images by digest; a tag's
 * content may change.
 */
export function byDigest(image: string): string {
  const [name = ""] = image.split("@");
  const isTagged = /:[^/]*$/.test(name);
  if (!BY_DIGEST.test(image) || isTagged)
    throw new Error(`${image} is not named by its digest alone: write NAME@sha256:DIGEST, without a tag`);
  return image;
}
