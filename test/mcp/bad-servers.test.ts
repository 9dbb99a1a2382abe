/** MCP servers that fail, lie or change, as real processes: no effect happens twice, and the model or a person is told. */
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serve } from '@hono/node-server';
import { StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { expect, onTestFinished, test } from 'vitest';
import { defineAgent, type JsonValue, type Session } from '../../src/index.ts';
import { type McpToolOptions, mcpTools } from '../../src/mcp/index.ts';
import { programOf } from '../support/built-file.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { type DeskOptions, deskServer } from './support/desk-server.ts';

const SERVER = fileURLToPath(new URL('support/stdio-server.ts', import.meta.url));

function newFile(): string {
  return join(mkdtempSync(join(tmpdir(), 'mcp-')), 'closed');
}

function closedIn(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

function desk(options: DeskOptions): () => Transport {
  const open: StdioClientTransport[] = [];
  onTestFinished(async () => {
    for (const transport of open) await transport.close();
  });
  return () => {
    const args = [...programOf(SERVER), JSON.stringify(options)];
    const made = new StdioClientTransport({ command: process.execPath, args });
    open.push(made);
    return made;
  };
}

type Planned = [name: string, args: { [name: string]: JsonValue }];

/** A session whose model makes these calls one after the other. @returns their results, and what they came to */
async function session(
  transport: () => Transport,
  calls: Planned[],
  tools: Record<string, McpToolOptions> = {},
): Promise<{ stage: Stage; session: Session; results: JsonValue[] }> {
  const stage = await openStage(({ toolResults }) => {
    const next = calls[toolResults.length];
    return next === undefined ? { text: 'done' } : { toolCalls: [{ name: next[0], args: next[1] }] };
  });
  const only = [...new Set(calls.map(([name]) => name))];
  const made = await mcpTools({ name: 'desk', transport, only, tools });
  await stage.startWorker([
    defineAgent({ name: 'desk', model: stage.provider('m'), instructions: 'Help.', tools: made }),
  ]);
  const started = await stage.sessions.start('desk', { id: stage.id(), message: 'go' });
  await untilPhase(started, 'idle', 'unknown_effect');
  const { items } = await started.calls();
  return { stage, session: started, results: items.map(({ result }) => result?.content ?? null) };
}

const t1 = { ticket: 't1' };
const t2 = { ticket: 't2' };

test.each(['before', 'after'] as const)(
  'a server that freezes %s its effect: the call is verified, and the effect happens once',
  async (frozen) => {
    const file = newFile();
    const { results, session: ended } = await session(
      desk({ file, frozen }),
      [
        ['close', t1],
        ['close', t2],
      ],
      {
        close: {
          timeout: '5s',
          // A process that does not stop by itself is killed four seconds after a time-out.
          settle: frozen === 'before' ? '5s' : 10,
          verify: ({ ticket }) =>
            closedIn(file).includes(ticket as string)
              ? { outcome: 'landed', output: 'found closed' }
              : { outcome: 'absent' },
        },
      },
    );
    expect(results).toEqual([frozen === 'before' ? 't1 is closed' : 'found closed', 't2 is closed']);
    expect(closedIn(file)).toEqual(['t1', 't2']);
    const { items } = await ended.calls();
    expect(items[0]?.dispatches[0]?.reason).toContain('timed out after 5000 ms');
  },
);

test('a server whose answers are wrong: verify confirms them where an agent asks for it', async () => {
  const file = newFile();
  const landed: McpToolOptions = {
    confirm: true,
    verify: () => ({ outcome: 'landed', output: 'it is done' }),
  };
  const absent: McpToolOptions = {
    effect: 'mutate',
    confirm: true,
    verify: () => ({ outcome: 'absent' }),
    settle: 10,
    maxAttempts: 1,
  };
  const { results, session: ended } = await session(
    desk({ file }),
    [
      ['refuse', t1],
      ['close', t1],
      ['find', t1],
      // From then on the server refuses to close.
      ['lose', t1],
      ['close', t2],
    ],
    { refuse: landed, close: landed, find: absent },
  );
  expect(results.slice(0, 2)).toEqual(['it is done', 't1 is closed']);
  expect(results[4]).toBe('it is done');
  const { items } = await ended.calls();
  expect(items.map(({ status }) => status.kind).slice(0, 3)).toEqual(['completed', 'completed', 'failed']);
  expect(items[2]?.dispatches[0]).toMatchObject({
    outcome: 'absent',
    reason: expect.stringContaining('the server says that it is done, and verify says absent'),
  });
  const unverified = mcpTools({
    name: 'desk',
    transport: desk({ file }),
    tools: { close: { confirm: true } },
  });
  await expect(unverified).rejects.toThrow('tools.close.confirm: set verify, too');
});

test('a read that is given up does not cut off a mutation that the same server has', async () => {
  const file = newFile();
  const stage = await openStage(({ toolResults, lastUserText: ticket }) => {
    if (toolResults.length > 0) return { text: toolResults.map(({ text }) => text).join() };
    return { toolCalls: [{ name: ticket === 't1' ? 'hold' : 'hang', args: { ticket } }] };
  });
  const transport = desk({ file });
  const hang = { effect: 'read', timeout: '1s' } as const;
  const tools = await mcpTools({ name: 'desk', transport, only: ['hold', 'hang'], tools: { hang } });
  await stage.startWorker([
    defineAgent({ name: 'desk', model: stage.provider('m'), instructions: 'Help.', tools }),
  ]);
  const mutation = await stage.sessions.start('desk', { id: stage.id(), message: 't1' });
  await expect.poll(() => existsSync(`${file}.t1.held`)).toBe(true);
  const read = await stage.sessions.start('desk', { id: stage.id(), message: 't2' });
  expect((await untilPhase(read, 'idle')).lastText).toContain('timed out');
  writeFileSync(`${file}.t1.go`, '');
  expect((await untilPhase(mutation, 'idle', 'unknown_effect')).lastText).toBe('t1 was held');
});

test('rubbish on standard output, a schema that refers to itself, a tool that is gone, and a result of 50 MB', async () => {
  const file = newFile();
  const { results, session: ended } = await session(
    desk({ file, rubbish: true }),
    [
      ['close', t1],
      ['tree', { name: 'a', children: [{ name: 'b' }] }],
      ['lose', t1],
      ['close', t2],
      ['large', t1],
      ['tree', { name: 'c', children: [{ name: 'd' }] }],
    ],
    { large: { effect: 'read' } },
  );
  expect(results).toEqual([
    't1 is closed',
    'a has b',
    'close is gone',
    { isError: true, text: expect.stringContaining('close') },
    expect.stringMatching(/large failed: .*(10485760|maximum|closed)/),
    'c has d',
  ]);
  expect(closedIn(file)).toEqual(['t1']);
  const { items } = await ended.calls();
  expect(items.map(({ status }) => status.kind)).toEqual([
    'completed',
    'completed',
    'completed',
    'completed',
    'failed',
    'completed',
  ]);
});

test('the token of a server is nowhere in the history of a session, also when the server refuses it', async () => {
  const secret = 'secret-token-of-the-server';
  const handler = createMcpHandler(() => deskServer({ file: newFile() }));
  const server = serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async (request) => {
      const isKnown = request.headers.get('authorization') === `Bearer ${secret}`;
      const body = await request.clone().text();
      return isKnown && !body.includes('t2')
        ? handler.fetch(request)
        : new Response('who are you?', { status: 401 });
    },
  });
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  const requestInit = { headers: { authorization: `Bearer ${secret}` } };
  const url = new URL(`http://127.0.0.1:${port}/mcp`);
  const { stage, session: ended } = await session(
    () => new StreamableHTTPClientTransport(url, { requestInit }),
    [
      ['find', t1],
      ['find', t2],
    ],
    { find: { effect: 'read', maxAttempts: 1 } },
  );
  const history = await stage.client.workflow.getHandle(ended.id).fetchHistory();
  const text = JSON.stringify(history, (key, value: unknown) =>
    key === 'data' && typeof value === 'string' ? Buffer.from(value, 'base64').toString() : value,
  );
  // Both calls are there.
  expect(text).toContain('t1 is open');
  expect(text).toContain('find failed');
  expect(text).not.toContain(secret);
});

test('a server whose descriptions are not those that a person has read is refused, with all of them', async () => {
  const transport = desk({ file: newFile() });
  const error = (await rejection(
    mcpTools({ name: 'desk', transport, only: ['find'], digest: 'unread' }),
  )) as Error & { details: { digest: string } };
  expect(error).toMatchObject({
    code: 'INVALID_DEFINITION',
    message: expect.stringMatching(/has tools that nobody has read.*digest: '[0-9a-f]{16}'/s),
    details: { tools: [{ name: 'find', description: 'Find a ticket' }] },
  });
  const { digest } = error.details;
  expect(Object.keys(await mcpTools({ name: 'desk', transport, only: ['find'], digest }))).toEqual(['find']);
  // Another choice is another list.
  await expect(mcpTools({ name: 'desk', transport, only: ['close'], digest })).rejects.toThrow(
    'nobody has read',
  );
});
