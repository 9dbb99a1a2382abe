/** Questions of a real MCP server, as a process, which people answer. */
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { expect, onTestFinished, test } from 'vitest';
import { type DefinedAgent, defineAgent, type JsonValue, type Session } from '../../src/index.ts';
import { type McpToolOptions, mcpTools } from '../../src/mcp/index.ts';
import { expectSound } from '../session/support/sound.ts';
import { programOf } from '../support/built-file.ts';
import { decide } from '../support/decide.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import type { DeskOptions } from './support/desk-server.ts';

const SERVER = fileURLToPath(new URL('support/stdio-server.ts', import.meta.url));

interface Desk {
  stage: Stage;
  session: Session;
  /** The tickets that were closed. */
  closed(): string[];
  /** The agent again, with new connections, as another worker has it. */
  again(): Promise<DefinedAgent>;
  stop(): Promise<void>;
}

/** A session whose model calls one tool of the desk about each of the tickets. */
async function desk(
  name: string,
  tickets: string[],
  options: McpToolOptions & Partial<DeskOptions> = {},
): Promise<Desk> {
  const { old = false, together = 1, ...tool } = options;
  const file = join(mkdtempSync(join(tmpdir(), 'mcp-')), 'closed');
  const open: StdioClientTransport[] = [];
  onTestFinished(async () => {
    for (const transport of open) await transport.close();
  });
  const transport = (): StdioClientTransport => {
    const args = [...programOf(SERVER), JSON.stringify({ file, old, together })];
    const made = new StdioClientTransport({ command: process.execPath, args });
    open.push(made);
    return made;
  };
  const stage = await openStage(({ toolResults }) =>
    toolResults.length > 0
      ? { text: toolResults.map(({ text }) => text).join(' | ') }
      : { toolCalls: tickets.map((ticket) => ({ name, args: { ticket } })) },
  );
  const again = async (): Promise<DefinedAgent> => {
    const tools = await mcpTools({ name: 'desk', transport, only: [name], tools: { [name]: tool } });
    return defineAgent({ name: 'desk', model: stage.provider('m'), instructions: 'Help.', tools });
  };
  const { stop } = await stage.startWorker([await again()]);
  const session = await stage.sessions.start('desk', { id: stage.id(), message: 'close' });
  const closed = (): string[] => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []);
  return { stage, session, closed, again, stop };
}

const respond = (output: JsonValue) => ({ decision: 'respond', output }) as const;

test('a mutation that asks goes on with the answer, on another worker, and happens once', async () => {
  const { stage, session, closed, again, stop } = await desk('ask', ['t1']);
  const { pending } = await untilPhase(session, 'approval');
  expect(pending).toMatchObject([
    {
      question: {
        text: 'MCP server desk asks: Close t1?',
        answer: { type: 'object', properties: { sure: { type: 'boolean' } }, required: ['sure'] },
      },
    },
  ]);
  await stop();
  await stage.startWorker([await again()]);
  // An answer that lacks a field is asked for again.
  await decide(session, 'call_1_0', respond({}));
  await expect
    .poll(async () => (await session.state()).pending[0]?.question?.text)
    .toBe('MCP server desk asks: Close t1?\nAsked again: the answer lacks sure');
  expect(closed()).toEqual([]);
  // The form has one field: its value is enough.
  await decide(session, 'call_1_0', respond(true), { by: 'ada' });
  const { lastText } = await untilPhase(session, 'idle');
  expect(lastText).toBe('t1: true, asked about t1');
  expect(closed()).toEqual(['t1']);
  await expectSound(stage, session);
});

test('a question that a person rejects is the end of the call, and nothing has happened', async () => {
  const { session, closed } = await desk('ask', ['t1']);
  await untilPhase(session, 'approval');
  await decide(session, 'call_1_0', { decision: 'reject', reason: 'it is open' });
  const { lastText } = await untilPhase(session, 'idle');
  expect(lastText).toContain('asks: Close t1?", and so ended this call of ask: it is open');
  expect(closed()).toEqual([]);
});

test('a server of an older protocol asks in the middle: what may run again begins again with the answer', async () => {
  const { session, closed } = await desk('ask_meanwhile', ['t1'], { old: true, effect: 'idempotent' });
  const { pending } = await untilPhase(session, 'approval');
  expect(pending[0]?.question?.text).toBe('MCP server desk asks: Close t1?');
  await decide(session, 'call_1_0', respond({ sure: true }));
  expect((await untilPhase(session, 'idle')).lastText).toBe('accept {"sure":true}');
  expect(closed()).toEqual(['t1']);
});

test('a mutation of an older protocol is not begun again: its question is declined, and the model is told', async () => {
  const { session, closed } = await desk('ask_meanwhile', ['t1'], { old: true });
  const { lastText } = await untilPhase(session, 'idle');
  expect(lastText).toBe(
    '[declined] The server asked: Close t1?. Nobody can answer in the middle of this call.\ndecline null',
  );
  expect(closed()).toEqual([]);
  expect((await session.calls()).items[0]?.dispatches).toHaveLength(1);
});

test('two calls at once to a server of an older protocol: a question that may be of either is declined', async () => {
  const options = { old: true, effect: 'read', together: 2 } as const;
  const { session, closed } = await desk('ask_meanwhile', ['t1', 't2'], options);
  const { lastText } = await untilPhase(session, 'idle');
  expect(lastText.split('|')).toEqual([
    expect.stringContaining('[declined] The server asked: Close t1?; Close t2?.'),
    expect.stringContaining('[declined] The server asked: Close t1?; Close t2?.'),
  ]);
  expect(closed()).toEqual([]);
});
