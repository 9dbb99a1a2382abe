/** `perdure mcp`, operated by the official client over standard input and output. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { untilPhase } from '../support/stage.ts';
import { commandOf, run } from './support/perdure.ts';
import { type CliStage, openStage } from './support/stage.ts';

let stage: CliStage;
beforeAll(async () => {
  stage = await openStage();
  await stage.startWorker();
});
afterAll(() => stage.close());

interface Assistant {
  tools: string[];
  /** The result, which is no error. */
  ask<T = Record<string, unknown>>(name: string, args?: object): Promise<T>;
  /** The error that is the result. */
  fail(name: string, args?: object): Promise<{ code: string; message: string; remedy: string }>;
  /** What went wrong on the wire. */
  errors: string[];
}

async function assistant(args: string[] = [], env: Record<string, string> = {}): Promise<Assistant> {
  const { command, args: words, env: all } = commandOf(['mcp', ...args], { ...stage.env, ...env });
  const transport = new StdioClientTransport({ command, args: words, env: all, stderr: 'ignore' });
  const client = new Client({ name: 'assistant', version: '1.0.0' });
  const errors: string[] = [];
  client.onerror = (error) => void errors.push(error.message);
  await client.connect(transport);
  onTestFinished(() => client.close());
  const call = async (name: string, given: object): Promise<{ isError: boolean; value: unknown }> => {
    const result = await client.callTool({ name, arguments: given as Record<string, unknown> });
    const [part] = result.content;
    if (part?.type !== 'text') throw new Error('the result is no text');
    return { isError: result.isError === true, value: JSON.parse(part.text) };
  };
  return {
    errors,
    tools: (await client.listTools()).tools.map(({ name }) => name),
    ask: async <T>(name: string, given = {}) => {
      const { isError, value } = await call(name, given);
      expect(isError, JSON.stringify(value)).toBe(false);
      return value as T;
    },
    fail: async (name, given = {}) => {
      const { isError, value } = await call(name, given);
      expect(isError).toBe(true);
      return (value as { error: Awaited<ReturnType<Assistant['fail']>> }).error;
    },
  };
}

interface Shown {
  answer: string | null;
  phase: string;
  waiting_calls: {
    call_id: string;
    args: unknown;
    args_digest: string;
    commands: string[];
    question?: unknown;
  }[];
}

const REFUND = 'refund ch_1:9000';

test('an assistant starts a session, asks it, shows it and finds it in the list', async () => {
  const { ask, errors } = await assistant();
  const session_id = stage.id('mcp');
  expect(await ask('start_session', { agent: 'echo', message: 'hello', session_id })).toMatchObject({
    session_id,
    phase: 'idle',
    answer: expect.stringContaining('hello'),
    waiting_calls: [],
  });
  const sent = { session_id, message: 'again', message_id: 'm-1' };
  expect(await ask('send_message', sent)).toMatchObject({ answer: expect.stringContaining('again') });
  // The session takes an id once.
  expect(await ask('send_message', sent)).toMatchObject({ phase: 'idle' });
  const shown = await ask<{ messages: { role: string; text: string }[]; total_messages: number }>(
    'show_session',
    { session_id, messages: 2 },
  );
  expect(shown.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  expect(shown.total_messages).toBe(4);
  const listed = async (): Promise<string[]> =>
    (await ask<{ sessions: { id: string }[] }>('list_sessions', { agent: 'echo' })).sessions.map(
      ({ id }) => id,
    );
  await expect.poll(listed).toContain(session_id);
  expect(errors).toEqual([]);
});

test('an assistant cannot decide unless it is allowed to, and then its decision has its name', async () => {
  const watcher = await assistant();
  expect(watcher.tools).toEqual(['list_sessions', 'show_session', 'inbox', 'start_session', 'send_message']);
  const session_id = stage.id('mcp');
  const start = { agent: 'support', message: REFUND, session_id };
  const { waiting_calls } = await watcher.ask<Shown>('start_session', start);
  const [call] = waiting_calls;
  expect(call).toMatchObject({
    args: { cents: 9_000 },
    commands: expect.arrayContaining([expect.stringContaining('perdure approve')]),
  });
  const decision = { session_id, call_id: call?.call_id, args_digest: call?.args_digest };
  await expect(watcher.fail('decide_call', { ...decision, decision: 'approve' })).rejects.toThrow(
    'decide_call',
  );

  const decider = await assistant(['--allow', 'decide', '--by', 'bot']);
  expect(
    await decider.fail('decide_call', { ...decision, args_digest: 'f00', decision: 'approve' }),
  ).toMatchObject({ code: 'DIGEST_MISMATCH' });
  expect(await decider.fail('decide_call', { ...decision, decision: 'edit' })).toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: 'args: is missing',
  });
  await decider.ask('decide_call', { ...decision, decision: 'approve' });
  await untilPhase(stage.session(session_id), 'idle');
  const { items } = await stage.session(session_id).calls();
  expect(items[0]).toMatchObject({ status: { kind: 'completed' }, decision: { by: 'bot' } });
  expect(items[0]?.decision).not.toHaveProperty('verified');
  // The first decision wins.
  expect(await decider.fail('decide_call', { ...decision, decision: 'reject' })).toMatchObject({
    code: 'CALL_NOT_PENDING',
  });
});

test('an assistant that may decide sees a question and answers it', async () => {
  const { ask } = await assistant(['--allow', 'decide']);
  const session_id = stage.id('mcp');
  const start = { agent: 'desk', message: 'ask Which seat?', session_id };
  const { waiting_calls } = await ask<Shown>('start_session', start);
  expect(waiting_calls).toMatchObject([{ question: { text: 'Which seat?', options: ['window', 'aisle'] } }]);
  const [call] = waiting_calls;
  const seen = { session_id, call_id: call?.call_id, args_digest: call?.args_digest };
  await ask('decide_call', { ...seen, decision: 'respond', output: 'aisle' });
  const { items } = await stage.session(session_id).calls();
  expect(items[0]).toMatchObject({ result: { content: 'aisle' }, decision: { by: 'ada via MCP' } });
});

test('nothing but the protocol is on standard output, and an error is a result', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-'));
  const loud = join(folder, 'loud.mjs');
  writeFileSync(loud, 'console.log("loud"); export const dataConverter = { payloadCodecs: [] };');
  const { fail, errors } = await assistant([], { PERDURE_DATA_CONVERTER: loud });
  expect(await fail('show_session', { session_id: 'nobody' })).toMatchObject({
    code: 'SESSION_NOT_FOUND',
    remedy: 'fix_input',
  });
  expect(errors).toEqual([]);
});

test('a server that is not there is a result, and the next call tries again', async () => {
  const { fail } = await assistant(['--address', '127.0.0.1:1']);
  for (let time = 0; time < 2; time++) {
    expect(await fail('inbox')).toMatchObject({ code: 'SERVER_UNAVAILABLE', remedy: 'retry' });
  }
});

test('over HTTP a caller needs the token', async () => {
  const running = stage.start(['mcp', '--port', '0', '--json']);
  onTestFinished(async () => {
    running.child.kill('SIGTERM');
    expect((await running.ended).code).toBe(0);
  });
  const ready = await running.line((line) => JSON.parse(line) as { url: string; token: string });
  const connect = async (token: string): Promise<Client> => {
    const client = new Client({ name: 'assistant', version: '1.0.0' });
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(ready.url), { requestInit }));
    return client;
  };
  await expect(connect('a-token-of-nobody')).rejects.toThrow(/401|Unauthorized/);
  const client = await connect(ready.token);
  const { content } = await client.callTool({ name: 'inbox', arguments: {} });
  expect(content).toMatchObject([{ type: 'text', text: expect.stringContaining('waiting_sessions') }]);
  await client.close();
});

test('without its package the command that installs it is named', async () => {
  const hide = `export const resolve = (name, context, next) => {
    if (name.startsWith('@modelcontextprotocol/server')) throw new Error('Cannot find package ' + name);
    return next(name, context);
  }`;
  const hidden = `import { register } from 'node:module'; register(${JSON.stringify(dataUrl(hide))})`;
  const { code, stderr, stdout } = await run(['mcp'], {
    env: { NODE_OPTIONS: `--import ${dataUrl(hidden)}` },
  });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toContain('Install it with npm install @modelcontextprotocol/server');
  expect(stderr).toContain('next: npm install @modelcontextprotocol/server');
});

function dataUrl(module: string): string {
  return `data:text/javascript,${encodeURIComponent(module)}`;
}
