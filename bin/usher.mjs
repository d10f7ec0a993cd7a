#!/usr/bin/env node
// What the package installs as `usher`. It runs on any Node that has modules, so that one that is too old says so in a sentence.
const lowest = 24;
if (Number(process.versions.node.split(".")[0]) < lowest) {
  console.error(`usher: needs Node ${lowest} or newer; this is Node ${process.versions.node}`);
  process.exit(2);
}
await import("./main.mjs");
