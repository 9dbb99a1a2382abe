/** An MCP server with the tools of a ticket desk. Tickets that are closed stand in a file, one a line. */
import { appendFileSync } from 'node:fs';
import { inputRequired, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod';

/** A picture of one pixel. */
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

export interface DeskOptions {
  file: string;
  /** It dies in the middle of the first call that closes a ticket with this number. */
  deadly?: string;
  /** How many further tools it has. */
  more?: number;
}

export function deskServer({ file, deadly, more = 0 }: DeskOptions): McpServer {
  const server = new McpServer({ name: 'desk', version: '1.0.0' });
  const ticket = z.object({ ticket: z.string() });
  server.registerTool(
    'find',
    { description: 'Find a ticket', inputSchema: ticket, annotations: { readOnlyHint: true } },
    ({ ticket: id }) => ({ content: [{ type: 'text', text: `${id} is open` }] }),
  );
  server.registerTool('close', { description: 'Close a ticket', inputSchema: ticket }, ({ ticket: id }) => {
    appendFileSync(file, `${id}\n`);
    if (id === deadly) process.kill(process.pid, 'SIGKILL');
    return { content: [{ type: 'text', text: `${id} is closed` }] };
  });
  server.registerTool('photo', { description: 'A photo', inputSchema: ticket }, () => ({
    content: [{ type: 'image', data: PIXEL, mimeType: 'image/png' }],
  }));
  server.registerTool('refuse', { description: 'Fails', inputSchema: ticket }, () => ({
    content: [{ type: 'text', text: 'it is locked' }],
    isError: true,
  }));
  server.registerTool('ask', { description: 'Asks back', inputSchema: ticket }, () =>
    inputRequired({
      inputRequests: {
        sure: inputRequired.elicit({ message: 'Sure?', requestedSchema: z.object({ sure: z.boolean() }) }),
      },
    }),
  );
  for (let n = 0; n < more; n++) {
    server.registerTool(`more.${n}`, { description: 'More', inputSchema: ticket }, () => ({ content: [] }));
  }
  return server;
}
