/** A process that looks for a binary and says so at its first line of progress: to be killed in the middle. */

import { findTemporalBinary } from '../../../src/server/index.ts';

const [path = '', cache = ''] = process.argv.slice(2);
let said = false;
await findTemporalBinary({
  env: { PATH: path, XDG_CACHE_HOME: cache },
  download: false,
  onProgress: () => {
    if (!said) process.stdout.write(`${JSON.stringify({ pid: process.pid })}\n`);
    said = true;
  },
});
