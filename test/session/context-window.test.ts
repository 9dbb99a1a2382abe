/** Sessions that reach the end of the model's context window, against an endpoint that has one. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { SUMMARY_REQUEST } from '../../src/contract/view.ts';
import { type AgentOptions, defineAgent, defineTool, type Session } from '../../src/index.ts';
import type { Fault, Reply, Script, ScriptedRequest } from '../../src/testing/index.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { expectSound } from './support/sound.ts';

const isCompaction = ({ lastUserText }: ScriptedRequest): boolean => lastUserText === SUMMARY_REQUEST;
const tokensOf = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4);

interface Endpoint {
  script: Script;
  /** Of each answered request: tokens of the prompt, and those that were in the cache. */
  usage: { prompt: number; cached: number; before: number; compaction: boolean }[];
}

/** An endpoint with a window of so many tokens, which caches the beginnings of prompts as providers do. */
function endpoint(
  window: number,
  answer: (request: ScriptedRequest) => Reply | Fault = () => ({ text: 'Noted.' }),
): Endpoint {
  const usage: Endpoint['usage'] = [];
  const seen: string[] = [];
  const script: Script = (request) => {
    const { messages, tools } = request.body as { messages: unknown; tools: unknown };
    // What a provider reads first is what its cache can find first.
    const text = JSON.stringify(tools) + JSON.stringify(messages).slice(0, -1);
    const prompt = tokensOf(text);
    if (prompt > window) {
      const message = `This model's maximum context length is ${window} tokens. Your messages have ${prompt}.`;
      const body = { error: { message, type: 'invalid_request_error', code: 'context_length_exceeded' } };
      return { fault: 'status', status: 400, body };
    }
    const said = answer(request);
    if ('fault' in said) return said;
    const cached = Math.max(0, ...seen.map((earlier) => common(earlier, text)));
    usage.push({
      prompt,
      cached: Math.floor(cached / 4),
      before: Math.floor((seen.at(-1)?.length ?? 0) / 4),
      compaction: isCompaction(request),
    });
    seen.push(text);
    return { ...said, usage: { inputTokens: prompt, cachedInputTokens: Math.floor(cached / 4) } };
  };
  return { script, usage };
}

function common(a: string, b: string): number {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  return i;
}

/** Summarizes when it is asked to, and otherwise answers. */
function clerk(request: ScriptedRequest): Reply {
  return isCompaction(request)
    ? { text: 'The user counts.' }
    : { text: `Noted: ${request.lastUserText.slice(0, 9)}` };
}

async function open(
  script: Script,
  options: Partial<AgentOptions> = {},
): Promise<{ stage: Stage; session: Session; restart: () => Promise<void> }> {
  const stage = await openStage(script);
  const agent = defineAgent({
    name: 'clerk',
    model: { model: stage.provider('m'), price: { inputPerMillion: 1, outputPerMillion: 1 } },
    instructions: 'Take notes.',
    maxOutputTokens: 100,
    ...options,
  });
  let worker = await stage.startWorker([agent]);
  const restart = async (): Promise<void> => {
    await worker.stop();
    worker = await stage.startWorker([agent]);
  };
  return { stage, session: await stage.sessions.start('clerk', { id: stage.id() }), restart };
}

/** Sends messages one after the other, and waits for the answer of each. */
async function say(session: Session, ...messages: Parameters<Session['send']>[0][]): Promise<void> {
  for (const message of messages) {
    const { turn } = await session.state();
    await session.send(message);
    await until(session, (view) => view.phase === 'waiting' || (view.phase === 'idle' && view.turn > turn));
  }
}

const pages = (count: number, length = 800): string[] =>
  [...Array(count).keys()].map((n) => `page ${n} `.padEnd(length, `${n} `));

test('a session goes on past the window, keeps every message, and sends a prompt that fits', async () => {
  const { script, usage } = endpoint(2_000, clerk);
  const { stage, session } = await open(script, { contextWindow: { tokens: 2_000 } });
  await say(session, 'My name is Ada.', ...pages(16));

  const view = await session.state();
  expect(view).toMatchObject({ phase: 'idle', turn: 17, wait: null });
  expect(view.notices.map(({ kind }) => kind)).toContain('compacted');
  expect(view.notices.map(({ kind }) => kind)).not.toContain('context_window');
  expect(usage.filter(({ compaction }) => compaction).length).toBeGreaterThan(1);
  expect(view.budget.spent).toMatchObject({
    turns: 17,
    inputTokens: usage.reduce((sum, { prompt }) => sum + prompt, 0),
  });

  // All that was said is there; the summaries are marked.
  const { items } = await session.transcript({ limit: 1_000 });
  const summaries = items.filter(({ summary }) => summary !== undefined);
  expect(items.length - summaries.length).toBe(34);
  // The model saw the last summary and what came after it, and the first words of the user as they were.
  const [first, ...rest] = await session.view();
  expect(first).toEqual(summaries.at(-1));
  expect(rest).toEqual(items.filter(({ summary }) => summary === undefined).slice(-rest.length));
  const last = stage.model.requests.at(-1)?.request;
  expect(last?.messages.map(({ role }) => role).slice(0, 2)).toEqual(['system', 'user']);
  expect(last?.messages[1]?.text).toContain('The user counts.');
  expect(last?.messages[1]?.text).toContain('My name is Ada.');
  expect(last?.messages.length).toBe(rest.length + 1);
  await expectSound(stage, session);
});

test('between compactions nearly all of each prompt is in the cache of the provider, and a compaction reads it, too', async () => {
  const { script, usage } = endpoint(4_000, clerk);
  const { session } = await open(script, { contextWindow: { tokens: 4_000 } });
  await say(session, ...pages(24));

  const share = (cached: number, before: number): number => (before === 0 ? 1 : cached / before);
  const after = usage.map((_, i) => usage[i - 1]?.compaction === true);
  const between = usage.filter(({ compaction }, i) => !compaction && !after[i]);
  expect(between.length).toBeGreaterThan(15);
  for (const { cached, before } of between) expect(share(cached, before)).toBeGreaterThanOrEqual(0.99);
  for (const { cached, prompt } of usage.filter(({ compaction }) => compaction)) {
    expect(prompt - cached).toBeLessThan(tokensOf(SUMMARY_REQUEST) + 250);
  }
});

test('a prompt that the provider refuses as too large is compacted, and the model is asked again', async () => {
  const { script } = endpoint(2_000, clerk);
  // Nobody has said how large the window is.
  const { stage, session } = await open(script);
  await say(session, ...pages(12));
  const view = await session.state();
  expect(view).toMatchObject({ phase: 'idle', turn: 12, wait: null });
  expect(view.notices.map(({ kind }) => kind)).toEqual(
    expect.arrayContaining(['context_window', 'compacted']),
  );
  // A refused prompt costs nothing.
  expect(view.budget.spent.lostReplies).toBe(0);
  await expectSound(stage, session);
});

test('without a context window, a prompt that is too large is refused as any other', async () => {
  const { session } = await open(endpoint(1_000, clerk).script, { contextWindow: false });
  await say(session, ...pages(8));
  expect((await session.state()).wait).toMatchObject({
    reason: 'provider_rejected',
    message: expect.stringContaining('maximum context length'),
  });
});

test('a single message larger than the window is a wait that names it and its size; an edit is the way on', async () => {
  const { stage, session } = await open(endpoint(2_000, clerk).script, { contextWindow: { tokens: 2_000 } });
  await say(session, 'hello', 'x'.repeat(20_000));
  const { wait } = await untilPhase(session, 'waiting');
  expect(wait).toMatchObject({
    reason: 'context_window',
    message: expect.stringMatching(/the largest message is \S+ with 200\d\d bytes.*Edit that message/),
  });
  const asked = stage.model.requests.length;
  const { items, total } = await session.transcript();
  const at = items.findIndex(({ blocks }) => JSON.stringify(blocks).length > 20_000);
  const short = { ...items[at], blocks: [{ kind: 'text' as const, text: 'short' }] };
  const from = total - items.length + at;
  await session.edit({
    transcript: { from, messages: [short as (typeof items)[number]] },
    by: 'ada',
    reason: 'too long',
  });
  await session.resume();
  await until(session, ({ phase, turn }) => phase === 'idle' && turn === 2);
  expect(stage.model.requests.length).toBeGreaterThan(asked);
  await expectSound(stage, session);
});

test('a call stays with its result: the strict endpoint refuses a prompt that separates them', async () => {
  const pagesRead: string[] = [];
  const { script } = endpoint(2_500, (request) => {
    if (isCompaction(request)) return { text: 'Many pages were read.' };
    const page = `page ${pagesRead.length}`;
    return pagesRead.length < 14 ? { toolCalls: [{ name: 'read', args: { page } }] } : { text: 'Read all.' };
  });
  const read = defineTool({
    description: 'Reads a page',
    inputSchema: z.object({ page: z.string() }),
    effect: 'read',
    execute: ({ page }) => {
      pagesRead.push(page);
      return page.repeat(80);
    },
  });
  const { stage, session } = await open(script, { tools: { read }, contextWindow: { tokens: 2_500 } });
  await say(session, 'Read all pages.');
  const view = await session.state();
  expect(view).toMatchObject({ phase: 'idle', wait: null, lastText: 'Read all.' });
  expect(view.notices.map(({ kind }) => kind)).toContain('compacted');
  // The message that is being answered stays word for word.
  expect(stage.model.requests.at(-1)?.request.messages[1]?.text).toContain('Read all pages.');
  await expectSound(stage, session);
});

test.each<[string, (strict: boolean) => Reply | Fault, string]>([
  ['answers nothing', () => ({ text: ' ' }), 'invalid_response'],
  [
    'calls a tool',
    (strict) => (strict ? { text: '' } : { toolCalls: [{ name: 'read', args: {} }] }),
    'invalid_response',
  ],
  ['is cut', () => ({ fault: 'cut' }), 'provider_unavailable'],
  ['answers more than it was given', () => ({ text: 'blah '.repeat(2_000) }), 'context_window'],
])(
  'a model that %s when it is asked for a summary is a visible wait, never a loop',
  async (_, bad, reason) => {
    let isBad = true;
    const { script } = endpoint(4_000, (request) =>
      isCompaction(request) && isBad ? bad(request.body['tool_choice'] === 'none') : clerk(request),
    );
    const { stage, session } = await open(script, {
      contextWindow: { tokens: 2_000 },
      tools: { read: defineTool({ inputSchema: z.object({}), effect: 'read', execute: () => 'x' }) },
    });
    await say(session, ...pages(8));
    const { wait, turn } = await untilPhase(session, 'waiting');
    expect(wait?.reason).toBe(reason);
    const asked = stage.model.requests.filter(({ request }) => isCompaction(request)).length;
    expect(asked).toBe(reason === 'context_window' ? 1 : 3);
    isBad = false;
    await session.resume();
    await until(session, (view) => view.phase === 'idle' && view.turn > turn);
    await expectSound(stage, session);
  },
);

test("an agent's own rule chooses what stays and writes the summary", async () => {
  const views: number[] = [];
  const { script, usage } = endpoint(4_000, clerk);
  const { stage, session } = await open(script, {
    contextWindow: {
      tokens: 2_000,
      compact: (view) => {
        views.push(view.length);
        return { keepFrom: view.length - 1, summary: `${view.length} messages.` };
      },
    },
  });
  await say(session, ...pages(8));
  expect((await session.state()).wait).toBeNull();
  expect(views.length).toBeGreaterThan(0);
  expect(usage.filter(({ compaction }) => compaction)).toEqual([]);
  expect(JSON.stringify((await session.view())[0])).toContain('messages.');
  await expectSound(stage, session);
});

test("an agent's own rule that separates a call from its result is a wait that says where to cut", async () => {
  const { script } = endpoint(4_000, clerk);
  const { session } = await open(script, {
    contextWindow: { tokens: 2_000, compact: () => ({ keepFrom: 99 }) },
  });
  await say(session, ...pages(8));
  expect((await untilPhase(session, 'waiting')).wait).toMatchObject({
    reason: 'context_window',
    message: expect.stringMatching(
      /^contextWindow\.compact of clerk returned keepFrom 99: write one of 1, 2/,
    ),
  });
});

test('a session that goes on over runs is compacted, too, and a worker without memory sends the same prompt', async () => {
  const { script } = endpoint(2_000, clerk);
  const { stage, session, restart } = await open(script, { runTurns: 2, contextWindow: { tokens: 2_000 } });
  const texts = pages(14);
  let turns = 0;
  const promptOf = (): string[] =>
    (stage.model.requests.at(-1)?.request.messages ?? []).map((message) => JSON.stringify(message));
  for (const text of texts) {
    await say(session, text);
    // Its memory is empty: it reads what is summarized, and what has left the run, where it is stored.
    if (turns++ % 3 === 0) await restart();
    const before = promptOf();
    const [summary] = await session.view();
    if (summary?.summary !== undefined) expect(before[1]).toContain('The user counts.');
  }
  const view = await session.state();
  expect(view).toMatchObject({ phase: 'idle', turn: 14, wait: null });
  const { items } = await session.transcript({ limit: 1_000 });
  expect(items.filter(({ summary }) => summary === undefined)).toHaveLength(28);
  expect(items.filter(({ summary }) => summary !== undefined).length).toBeGreaterThan(1);
  const seen = await session.view();
  // The last prompt was what the model sees now, without its answer.
  expect(promptOf()).toHaveLength(1 + seen.length - 1);
  const lastText = seen
    .at(-2)
    ?.blocks.map((block) => (block.kind === 'text' ? block.text : ''))
    .join('');
  expect(lastText).toBe(texts.at(-1));
});

test('pinned messages stay word for word over summaries, runs and workers, with their files', async () => {
  const { script, usage } = endpoint(8_000, clerk);
  const { stage, session, restart } = await open(script, {
    runTurns: 2,
    contextWindow: { tokens: 8_000, keep: 500 },
  });
  const url = 'https://example.com/rules.png';
  await say(session, 'Good morning.');
  await say(session, { text: 'Never refund more than $40.', pin: true });
  await say(session, {
    parts: [
      { type: 'text', text: 'These are the rules.' },
      { type: 'image', image: url },
    ],
    pin: true,
  });
  const [, , rule] = await session.view();
  expect(rule).toMatchObject({ role: 'user', pinned: true });
  for (const [n, text] of pages(18, 3_200).entries()) {
    await say(session, text);
    if (n % 6 === 0) await restart();
  }

  expect(await session.state()).toMatchObject({ phase: 'idle', wait: null });
  expect(usage.filter(({ compaction }) => compaction).length).toBeGreaterThan(1);
  const [seen] = await session.view();
  expect(seen?.summary).toBeDefined();
  const pinned = ['Never refund more than $40.', 'These are the rules.'].map((text) => ({
    kind: 'text',
    text: `[Pinned, word for word]\n${text}`,
  }));
  expect(seen?.blocks.slice(-3)).toEqual([...pinned, { kind: 'file', media_type: 'image/*', url }]);
  const last = JSON.stringify(stage.model.requests.at(-1)?.request.body);
  for (const said of ['Never refund more than $40.', url]) expect(last.split(said)).toHaveLength(2);

  const tooMuch = session.send({ text: 'rules '.repeat(1_000), pin: true });
  await expect(tooMuch).rejects.toMatchObject({
    code: 'TOO_LARGE',
    message: expect.stringMatching(/pin: the pinned messages would have \d+ bytes, at most \d+ fit.*clerk/),
  });
  await expectSound(stage, session);
});

test('a fork from before a compaction sees what the model saw then', async () => {
  const { script } = endpoint(2_000, clerk);
  const { stage, session } = await open(script, { contextWindow: { tokens: 2_000 } });
  await say(session, ...pages(10));
  const { checkpoints, places } = await expectSound(stage, session);
  const at = checkpoints.findIndex((state) => state.turn === 2 && state.inFlight.length === 0);
  const { runId } = await stage.client.workflow.getHandle(session.id).describe();
  const from = { sessionId: session.id, checkpointId: `${runId}:${places[at]}` };
  const fork = await stage.sessions.fork(from, {
    id: stage.id('fork'),
    by: 'ada',
    reason: 'to look',
    message: 'go on',
  });
  await until(fork, ({ phase, turn }) => phase === 'idle' && turn === 3);
  expect((await fork.view()).map(({ summary }) => summary)).toEqual(Array(6).fill(undefined));
  await expectSound(stage, fork);
});
