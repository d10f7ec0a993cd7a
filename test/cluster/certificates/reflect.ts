// @peculiar/x509 loads a dependency container that refuses to start without the metadata functions of a decorator proposal. No
// decorator is ever applied there, so functions that know of no metadata are enough. Import this before it.
const nothing = (): undefined => undefined;
const missing = Object.entries({
  getMetadata: nothing,
  getOwnMetadata: nothing,
  defineMetadata: nothing,
  metadata: () => nothing,
}).filter(([name]) => !(name in Reflect));
Object.assign(Reflect, Object.fromEntries(missing));
