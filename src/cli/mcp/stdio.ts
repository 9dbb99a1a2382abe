/** The MCP server on standard input and output. */
import { once } from 'node:events';
import { Writable } from 'node:stream';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { type McpServerOptions, sessionsServer } from './server.ts';

/** Serves until the client closes standard input, or until `stop`. */
export async function serveOverStdio(options: McpServerOptions, stop: AbortSignal): Promise<void> {
  const transport = new StdioServerTransport(process.stdin, ownOutput());
  const ended = once(process.stdin, 'close', { signal: stop }).catch(() => undefined);
  const server = serveStdio(() => sessionsServer(options), { transport });
  await ended;
  await server.close();
}

/** Standard output for the protocol alone: what other modules print goes to standard error. */
function ownOutput(): Writable {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  return new Writable({
    decodeStrings: false,
    write: (chunk: string, encoding, callback) => void write(chunk, encoding, callback),
  });
}
