/**
 * V8's options for processes that live for seconds: without them, a quarter of the processor time goes into
 * optimisation and garbage collection.
 */
export const SHORT_LIVED: readonly string[] = [
  '--no-opt',
  '--min-semi-space-size=16',
  '--max-semi-space-size=32',
];
