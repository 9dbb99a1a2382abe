/** The MCP server over streamable HTTP. */
import { createMcpHandler } from '@modelcontextprotocol/server';
import { Hono } from 'hono';
import { bearerAuth } from 'hono/bearer-auth';
import { invalid } from '../../contract/errors.ts';
import { type McpServerOptions, sessionsServer } from './server.ts';

/** The path that clients are given. */
export const MCP_PATH = '/mcp';

/** A handler for callers with the token. @throws PerdureError `INVALID_ARGUMENT` for a token that can be guessed */
export function mcpHandler(
  options: McpServerOptions,
  token: string,
): { fetch: (request: Request) => Promise<Response>; close: () => void } {
  if (!/^[\w.~+/-]{16,}=*$/.test(token))
    throw invalid(
      'token',
      'write at least 16 letters, digits or - . _ ~ + /. Make one: openssl rand -hex 32',
    );
  const handler = createMcpHandler(() => sessionsServer(options));
  const app = new Hono().use(bearerAuth({ token })).all(MCP_PATH, ({ req }) => handler.fetch(req.raw));
  return { fetch: async (request) => app.fetch(request), close: () => void handler.close() };
}
