/** A door with three steps: the icon of an operator's tile. */
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" rx="10" fill="#1f4e79"/><path d="M22 46V14h20v32" fill="none" stroke="#fff" stroke-width="4"/><circle cx="37" cy="31" r="2.5" fill="#fff"/><path d="M14 48h36M10 54h44" stroke="#fff" stroke-width="3"/></svg>`;

export const ICON = { base64data: Buffer.from(SVG).toString("base64"), mediatype: "image/svg+xml" };
