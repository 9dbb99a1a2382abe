/** An MCP server with the tools of a ticket desk. Tickets that are closed stand in a file, one a line. */
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { acceptedContent, inputRequired, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod';

/** A picture of one pixel. */
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

export interface DeskOptions {
  file: string;
  /** It dies in the middle of the first call that closes a ticket with this number. */
  deadly?: string;
  /** It freezes in the first call that closes a ticket, before or after it has. */
  frozen?: 'before' | 'after';
  /** It prints what is no message. */
  rubbish?: boolean;
  /** It speaks the protocol of 2025. */
  old?: boolean;
  /** It asks in the middle once so many calls have begun. Default: 1. */
  together?: number;
  /** How many further tools it has. */
  more?: number;
}

export function deskServer(options: DeskOptions): McpServer {
  const { file, deadly, frozen, rubbish, more = 0, together = 1 } = options;
  const freeze = (): void => {
    if (existsSync(`${file}.frozen`)) return;
    writeFileSync(`${file}.frozen`, '');
    process.kill(process.pid, 'SIGSTOP');
  };
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
  const close = server.registerTool(
    'close',
    { description: 'Close a ticket', inputSchema: ticket },
    ({ ticket: id }) => {
      if (rubbish === true) process.stdout.write('closing a ticket\n{"half": \n');
      if (frozen === 'before') freeze();
      appendFileSync(file, `${id}\n`);
      if (id === deadly) process.kill(process.pid, 'SIGKILL');
      if (frozen === 'after') freeze();
      return { content: [{ type: 'text', text: `${id} is closed` }] };
    },
  );
  server.registerTool('lose', { description: 'Removes a tool', inputSchema: ticket }, () => {
    close.remove();
    return { content: [{ type: 'text', text: 'close is gone' }] };
  });
  for (const name of ['hold', 'hang'])
    server.registerTool(name, { description: 'Waits', inputSchema: ticket }, async ({ ticket: id }) => {
      writeFileSync(`${file}.${id}.held`, '');
      while (!existsSync(`${file}.${id}.go`)) await new Promise((resolve) => setTimeout(resolve, 20));
      return { content: [{ type: 'text', text: `${id} was held` }] };
    });
  server.registerTool('large', { description: '50 MB', inputSchema: ticket }, () => ({
    content: [{ type: 'text', text: 'x'.repeat(50_000_000) }],
  }));
  const tree = z.object({
    name: z.string(),
    get children() {
      return z.array(tree).optional();
    },
  });
  server.registerTool('tree', { description: 'A tree', inputSchema: tree }, ({ name, children }) => ({
    content: [{ type: 'text', text: `${name} has ${children?.[0]?.name}` }],
  }));
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
