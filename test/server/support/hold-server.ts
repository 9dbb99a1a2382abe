/** A process that starts a dev server over a directory (or in memory) and lives until its stdin ends. */

import { pathToFileURL } from 'node:url';
import { startServer } from '../../../src/server/index.ts';

const [dir] = process.argv.slice(2);
const server = await startServer(dir ? { dir } : { inMemory: true });
const port = Number(server.address.split(':')[1]);
process.stdout.write(
  `${JSON.stringify({ url: pathToFileURL(server.logFile).href, port, pid: server.pid })}\n`,
);
// Only stdin keeps this process alive: the server does not.
process.stdin.resume();
