/** An MCP server with one tool, over stdio or, with the argument `http`, on a port that it reports. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';
import { toolText } from '../support/job.ts';
import { say } from '../support/processes.ts';

function lookServer(): McpServer {
  const server = new McpServer({ name: 'looks', version: '1.0.0' });
  const inputSchema = z.object({ ref: z.string() });
  server.registerTool(
    'look',
    { description: 'Looks', inputSchema, annotations: { readOnlyHint: true } },
    ({ ref }) => ({ content: [{ type: 'text', text: toolText(ref) }] }),
  );
  return server;
}

if (process.argv[2] === 'http') {
  const handler = createMcpHandler(lookServer);
  const server = serve({ fetch: (request) => handler.fetch(request), port: 0, hostname: '127.0.0.1' });
  await once(server, 'listening');
  say({ event: 'ready', port: (server.address() as AddressInfo).port });
} else serveStdio(lookServer);
