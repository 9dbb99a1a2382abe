/** V8's options for processes that live for seconds: without them a quarter of their processor time optimises and collects. */
export const SHORT_LIVED: readonly string[] = [
  '--no-opt',
  '--min-semi-space-size=16',
  '--max-semi-space-size=32',
];
