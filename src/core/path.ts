/** A place inside an object: keys and list indexes from the top. */
export type Path = readonly (string | number)[];

/** RFC 6901: `~` and `/` inside a key are escaped, `~` first. */
export function pointer(path: Path): string {
  let text = "";
  for (const step of path) {
    text += `/${typeof step === "number" ? step : step.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  }
  return text;
}

/** The steps of an RFC 6901 pointer; list indexes stay text, as the pointer alone can't tell them from keys. */
export function steps(text: string): string[] {
  if (text === "") return [];
  return text
    .slice(1)
    .split("/")
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** As Kubernetes prints it for people: `spec.containers[0].image`, `metadata.labels[app.kubernetes.io/name]`. */
export function fieldPath(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number" || /[^A-Za-z0-9_-]/.test(step) || step === "") text += `[${step}]`;
    else text += text === "" ? step : `.${step}`;
  }
  return text;
}
