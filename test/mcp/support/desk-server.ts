/** An MCP server with the tools of a ticket desk. Tickets that are closed stand in a file, one a line. */
import { appendFileSync } from 'node:fs';
import { acceptedContent, inputRequired, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod';

/** A picture of one pixel. */
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

export interface DeskOptions {
  file: string;
  /** It dies in the middle of the first call that closes a ticket with this number. */
  deadly?: string;
  /** It speaks the protocol of 2025. */
  old?: boolean;
  /** It asks in the middle once so many calls have begun. Default: 1. */
  together?: number;
  /** How many further tools it has. */
  more?: number;
}

export function deskServer({ file, deadly, more = 0, together = 1 }: DeskOptions): McpServer {
  let calls = 0;
  let all: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => {
    all = resolve;
  });
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
  const sure = z.object({ sure: z.boolean() });
  server.registerTool(
    'ask',
    { description: 'Asks back', inputSchema: ticket },
    ({ ticket: id }, { mcpReq }) => {
      const answer = acceptedContent(mcpReq.inputResponses, 'sure', sure);
      if (answer === undefined) {
        const request = inputRequired.elicit({ message: `Close ${id}?`, requestedSchema: sure });
        return inputRequired({ inputRequests: { sure: request }, requestState: `asked about ${id}` });
      }
      appendFileSync(file, `${id}\n`);
      const text = `${id}: ${answer.sure}, ${mcpReq.requestState<string>()}`;
      return { content: [{ type: 'text', text }] };
    },
  );
  server.registerTool('sample', { description: 'Asks a model', inputSchema: ticket }, () =>
    inputRequired({ inputRequests: { roots: inputRequired.listRoots() } }),
  );
  server.registerTool(
    'ask_meanwhile',
    { description: 'Asks in the middle', inputSchema: ticket },
    async ({ ticket: id }, { mcpReq }) => {
      calls += 1;
      if (calls >= together) all();
      await begun;
      const requestedSchema = { type: 'object' as const, properties: { sure: { type: 'boolean' as const } } };
      // oxlint-disable-next-line typescript/no-deprecated -- the way of older protocols
      const { action, content } = await mcpReq.elicitInput({ message: `Close ${id}?`, requestedSchema });
      if (action === 'accept') appendFileSync(file, `${id}\n`);
      return { content: [{ type: 'text', text: `${action} ${JSON.stringify(content ?? null)}` }] };
    },
  );
  for (let n = 0; n < more; n++) {
    server.registerTool(`more.${n}`, { description: 'More', inputSchema: ticket }, () => ({ content: [] }));
  }
  return server;
}
