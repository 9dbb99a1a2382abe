/** Tools of a real MCP server, as a process and over HTTP, in sessions on a real server. */
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serve } from '@hono/node-server';
import { StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { createMcpHandler, type McpServerFactory, Server } from '@modelcontextprotocol/server';
import { expect, onTestFinished, test } from 'vitest';
import { defineAgent } from '../../src/index.ts';
import { type McpToolsOptions, mcpTools } from '../../src/mcp/index.ts';
import { expectSound } from '../session/support/sound.ts';
import { programOf } from '../support/built-file.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, until, untilPhase } from '../support/stage.ts';
import { type DeskOptions, deskServer } from './support/desk-server.ts';

const SERVER = fileURLToPath(new URL('support/stdio-server.ts', import.meta.url));

interface Desk {
  closed(): string[];
  transport: () => Transport;
}

function desk(options: Partial<DeskOptions> = {}): Desk {
  const file = join(mkdtempSync(join(tmpdir(), 'mcp-')), 'closed');
  const open: StdioClientTransport[] = [];
  onTestFinished(async () => {
    for (const transport of open) await transport.close();
  });
  return {
    closed: () => readFileSync(file, 'utf8').trim().split('\n'),
    transport: () => {
      const args = [...programOf(SERVER), JSON.stringify({ file, ...options })];
      const transport = new StdioClientTransport({ command: process.execPath, args });
      open.push(transport);
      return transport;
    },
  };
}

async function effects(options: Omit<McpToolsOptions, 'name'>): Promise<Record<string, unknown>> {
  const tools = await mcpTools({ name: 'desk', ...options });
  return Object.fromEntries(Object.entries(tools).map(([name, { effect }]) => [name, effect]));
}

test('what a server says of its tools counts only when it is trusted, and what the agent says always', async () => {
  const { transport } = desk();
  const only = ['find', 'close'];
  expect(await effects({ transport, only })).toEqual({ find: 'mutate', close: 'mutate' });
  const tools = { close: { as: 'shut', effect: 'idempotent' } } as const;
  expect(await effects({ transport, only, trusted: true, tools, prefix: 'desk_' })).toEqual({
    desk_find: 'read',
    shut: 'idempotent',
  });
});

test('an option that is undefined counts as absent', async () => {
  const { transport } = desk();
  const common = { name: 'desk', transport, only: ['close'] };
  const tools = { close: { idempotency: undefined, description: undefined } };
  const [given, absent] = await Promise.all([
    mcpTools({ ...common, tools: tools as unknown as McpToolsOptions['tools'] & object }),
    mcpTools(common),
  ]);
  const { description, idempotency } = absent['close'] ?? {};
  expect(idempotency).toEqual({ scope: 'call' });
  expect(given['close']).toMatchObject({ description, idempotency });
});

test('a session reads, changes, sees a picture and hears of a failure', async () => {
  const calls = ['find', 'close', 'photo', 'refuse', 'sample'];
  const stage = await openStage(({ toolResults }) => {
    const name = calls[toolResults.length];
    return name === undefined ? { text: 'done' } : { toolCalls: [{ name, args: { ticket: 't1' } }] };
  });
  const { transport, closed } = desk();
  const tools = await mcpTools({ name: 'desk', transport, tools: { find: { effect: 'read' } } });
  await stage.startWorker([
    defineAgent({ name: 'desk', model: stage.provider('m'), instructions: 'Help.', tools }),
  ]);
  const session = await stage.sessions.start('desk', { id: stage.id(), message: 'close t1' });
  await until(session, ({ phase, lastText }) => phase === 'idle' && lastText === 'done');
  const { items } = await session.calls();
  expect(items.map(({ name, status, result }) => [name, status.kind, result?.content])).toMatchObject([
    ['find', 'completed', 't1 is open'],
    ['close', 'completed', 't1 is closed'],
    ['photo', 'completed', { content: [{ type: 'image', mimeType: 'image/png' }] }],
    ['refuse', 'completed', { isError: true, text: 'it is locked' }],
    ['sample', 'completed', { isError: true, text: expect.stringMatching(/./) }],
  ]);
  // A text is what the model gets, and enters the history once.
  expect(items.map(({ result }) => result?.modelOutput?.['type'])).toEqual([
    undefined,
    undefined,
    'content',
    'error-text',
    'error-text',
  ]);
  expect(closed()).toEqual(['t1']);
  await expectSound(stage, session);
});

test('a server that dies in a mutation leaves it unknown, verify tells, and the next call has a new connection', async () => {
  const stage = await openStage(({ toolResults }) => {
    const ticket = ['t1', 't2'][toolResults.length];
    return ticket === undefined ? { text: 'done' } : { toolCalls: [{ name: 'close', args: { ticket } }] };
  });
  const { transport, closed } = desk({ deadly: 't1' });
  const tools = await mcpTools({
    name: 'desk',
    transport,
    only: ['close'],
    tools: {
      close: {
        settle: 10,
        verify: ({ ticket }) =>
          closed().includes(ticket as string)
            ? { outcome: 'landed', output: 'found closed' }
            : { outcome: 'absent' },
      },
    },
  });
  await stage.startWorker([
    defineAgent({ name: 'desk', model: stage.provider('m'), instructions: 'Help.', tools }),
  ]);
  const session = await stage.sessions.start('desk', { id: stage.id(), message: 'close both' });
  await untilPhase(session, 'idle');
  const { items } = await session.calls();
  expect(items.map(({ result }) => result?.content)).toEqual(['found closed', 't2 is closed']);
  expect(closed()).toEqual(['t1', 't2']);
  await expectSound(stage, session);
});

async function overHttp(made: McpServerFactory): Promise<() => Transport> {
  const handler = createMcpHandler(made);
  const server = serve({ fetch: (request) => handler.fetch(request), port: 0, hostname: '127.0.0.1' });
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  return () => new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`));
}

test('a server over HTTP', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'mcp-')), 'closed');
  const transport = await overHttp(() => deskServer({ file }));
  expect(await effects({ transport, trusted: true, only: ['find'] })).toEqual({ find: 'read' });
});

test.each(['', 'two words', 'größe', 'x'.repeat(65), '__proto__'])(
  'a tool of a server with the name "%s" is refused with what to write, and taken by another name',
  async (name) => {
    const transport = await overHttp(() => {
      // oxlint-disable-next-line typescript/no-deprecated -- McpServer cannot offer each of these names
      const server = new Server({ name: 'desk', version: '1.0.0' }, { capabilities: { tools: {} } });
      server.setRequestHandler('tools/list', () => ({ tools: [{ name, inputSchema: { type: 'object' } }] }));
      return server;
    });
    expect(await rejection(mcpTools({ name: 'desk', transport }))).toMatchObject({
      code: 'INVALID_DEFINITION',
      message: `MCP server desk: tools.${name}: ${name} is no name for a tool: set as to letters, digits, - and _`,
    });
    const tools = Object.fromEntries([[name, { as: 'named' }]]);
    expect(await effects({ transport, tools })).toEqual({ named: 'mutate' });
  },
);

test.each<[name: string, desk: Partial<DeskOptions>, options: object, message: string]>([
  [
    'an unknown tool',
    {},
    { tools: { fund: {} } },
    'MCP server desk: tools.fund is not a tool of the server. Its tools: find,',
  ],
  ['an unknown choice', {}, { only: ['fund'] }, 'only.fund is not a tool of the server'],
  [
    'too many tools',
    { more: 10_000 },
    {},
    'the server has 10012 tools, and each prompt holds all: name some in only',
  ],
  ['a name that no model takes', { more: 1 }, {}, 'tools.more.0: more.0 is no name for a tool: set as'],
  ['two tools of one name', {}, { tools: { close: { as: 'find' } } }, 'two tools are named find: set as'],
])('%s is refused with what to write', async (_, options, more, message) => {
  const error = await rejection(mcpTools({ name: 'desk', transport: desk(options).transport, ...more }));
  expect(error).toMatchObject({ code: 'INVALID_DEFINITION', message: expect.stringContaining(message) });
});

test('a server that is no server is named at the start', async () => {
  const transport = (): Transport =>
    new StdioClientTransport({ command: process.execPath, args: ['-e', ''] });
  expect(await rejection(mcpTools({ name: 'desk', transport }))).toMatchObject({
    code: 'INVALID_DEFINITION',
    message: expect.stringContaining('MCP server desk: the server cannot be reached'),
  });
});
