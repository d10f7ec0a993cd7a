/** The minor versions of Kubernetes that usher is tested with (`npm run test:versions`), from the oldest to the newest. */
export const KUBERNETES = { oldest: 33, newest: 37 };
