/** A stream follows the history: over approvals, runs, rewinds, and the deaths of workers, with nothing twice or missing. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { readAhead } from '../../src/client/stream-follower.ts';
import {
  type DurablePart,
  defineAgent,
  defineTool,
  type Session,
  type StreamOptions,
  type StreamPart,
  TemporalSaver,
} from '../../src/index.ts';
import { deleteRun, untilGone } from '../../src/temporal/executions.ts';
import { longPolls } from '../../src/temporal/follow-events.ts';
import type { Script } from '../../src/testing/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type RunningWorker, type Stage, until, untilPhase } from '../support/stage.ts';

/** How often the property test disconnects. */
const CUTS = Number(process.env['PERDURE_CUTS'] ?? 300);

/** Does what the user says: `pay` with an approval, `look` without, `talk` at length. */
const teller =
  (mayAnswer: Promise<void> | undefined): Script =>
  async ({ lastUserText, toolResults, stepInTurn }) => {
    await mayAnswer;
    const [verb = ''] = lastUserText.split(' ');
    if (stepInTurn === 0 && (verb === 'pay' || verb === 'look'))
      return { toolCalls: [{ name: verb, args: { what: lastUserText } }] };
    if (verb === 'talk') return { text: words(60), chunks: 60, chunkDelayMs: 15 };
    return { text: `${lastUserText}: ${toolResults.at(-1)?.text ?? 'nothing'}` };
  };

const words = (n: number): string => Array.from({ length: n }, (_, i) => `word${i}`).join(' ');

/** Holds the model's answer until a reader follows it: what is said before that comes in one piece. */
function gate(): { opens: Promise<void>; open: () => void } {
  let open = (): void => {};
  const opens = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opens, open };
}

const isThinking = (part: StreamPart): boolean => part.type === 'phase' && part.phase === 'thinking';

async function open(
  runTurns?: number,
  mayAnswer?: Promise<void>,
): Promise<{ stage: Stage; session: Session; worker: RunningWorker }> {
  const stage = await openStage(teller(mayAnswer));
  const inputSchema = z.object({ what: z.string() });
  const agent = defineAgent({
    name: 'teller',
    model: stage.provider('m'),
    instructions: 'Pay.',
    tools: {
      pay: defineTool({
        description: 'Pays',
        inputSchema,
        effect: 'mutate',
        needsApproval: true,
        execute: ({ what }) => ({ paid: what }),
      }),
      look: defineTool({ description: 'Looks', inputSchema, effect: 'read', execute: ({ what }) => what }),
    },
    ...(runTurns === undefined ? {} : { runTurns }),
  });
  const worker = await stage.startWorker([agent]);
  return { stage, session: await stage.sessions.start('teller', { id: stage.id() }), worker };
}

async function say(session: Session, ...texts: string[]): Promise<void> {
  for (const text of texts) {
    const { messages } = await session.state();
    await session.send(text);
    await until(
      session,
      ({ phase, messages: now }) => phase === 'approval' || (phase === 'idle' && now > messages + 1),
    );
    for (const call of await session.approvals())
      await session.decide(call, { decision: 'approve' }, { by: 'ada' });
    await untilPhase(session, 'idle');
  }
}

/** Reads a stream to its end, and does something when a part comes. */
async function read(
  session: Session,
  options: StreamOptions = {},
  onPart: (part: StreamPart) => unknown = () => undefined,
): Promise<StreamPart[]> {
  const parts: StreamPart[] = [];
  const gone = new AbortController();
  onTestFinished(() => gone.abort());
  for await (const part of session.stream({ ...options, signal: gone.signal })) {
    parts.push(part);
    await onPart(part);
  }
  return parts;
}

function durable(parts: readonly StreamPart[]): DurablePart[] {
  return parts.filter((part): part is DurablePart => 'cursor' in part);
}

function texts(parts: readonly StreamPart[], role: string): string[] {
  return parts.flatMap((part) => (part.type === 'message' && part.role === role ? [part.text] : []));
}

/** What a reader has on its screen at the end: text is appended, a reset and a message clear it. */
function screens(parts: readonly StreamPart[]): string[] {
  const seen: string[] = [];
  let screen = '';
  for (const part of parts) {
    if (part.type === 'reset') screen = '';
    if (part.type === 'text') screen += part.text;
    if (part.type === 'message' && part.role === 'assistant') {
      seen.push(screen);
      screen = '';
    }
  }
  return seen;
}

test('a reader who is disconnected at random gets everything once and in order, over all runs of a session', async () => {
  const { session } = await open(3);
  await say(session, 'look 1', 'pay 2', 'talk', 'look 4', 'hello', 'pay 6');
  await session.pause({ by: 'ada', reason: 'lunch' });
  await untilPhase(session, 'paused');
  await session.resume({ by: 'ada' });
  await untilPhase(session, 'idle');
  await session
    .edit({ transcript: { from: 12, messages: [] }, by: 'ada', reason: 'shorter' })
    .catch(() => undefined);
  await session.setBudget({ limits: { tokens: 500_000 }, by: 'ada' });
  await say(session, 'look 7');
  await session.cancel({ by: 'ada' });
  await session.result();

  const whole = await read(session, { since: 'start' });
  const cursors = durable(whole).map(({ cursor }) => cursor);
  expect(new Set(cursors).size).toBe(cursors.length);
  expect(texts(whole, 'user')).toEqual(['look 1', 'pay 2', 'talk', 'look 4', 'hello', 'pay 6', 'look 7']);
  expect(screens(whole)).toEqual(texts(whole, 'assistant'));
  const kinds = new Set(whole.map(({ type }) => type));
  for (const kind of ['call', 'approval', 'pause', 'run', 'spent', 'closed', 'phase'] as const)
    expect(kinds).toContain(kind);

  for (const [at, { type, cursor }] of durable(whole).entries()) {
    if (type !== 'run') continue;
    const rest = await read(session, { since: cursor });
    expect(durable(rest)).toEqual(durable(whole).slice(at + 1));
  }

  let state = 7;
  const random = (n: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state % n;
  };
  for (let cuts = 0; cuts < CUTS; ) {
    const found: DurablePart[] = [];
    let since = 'start';
    for (let isOver = false; !isOver; cuts++) {
      const length = 1 + random(40);
      const parts: StreamPart[] = [];
      isOver = true;
      for await (const part of session.stream({ since })) {
        parts.push(part);
        if (parts.length < length) continue;
        isOver = false;
        break;
      }
      found.push(...durable(parts));
      since = found.at(-1)?.cursor ?? since;
    }
    expect(found).toEqual(durable(whole));
  }
});

test('a stream goes on over an approval, and tells how it was decided and what came of it', async () => {
  const { session } = await open();
  await session.send('pay rent');
  const parts = await read(session, {}, async (part) => {
    if (part.type !== 'approval' || part.state !== 'asked') return;
    expect(part.call.next).toMatchObject({ action: 'decide', callId: part.call.callId });
    await session.decide(part.call, { decision: 'approve' }, { by: 'ada' });
  });
  const told = parts.flatMap((part) => {
    if (part.type === 'call') return [part.news.join()];
    return part.type === 'approval' ? [part.state] : [];
  });
  expect(told).toEqual(['asked', 'asked', 'dispatched', 'decided', 'outcome,finished']);
  expect(texts(parts, 'assistant').at(-1)).toContain('"paid":"pay rent"');
  expect(parts.at(-1)).toMatchObject({ type: 'phase', phase: 'idle' });

  await session.send('pay more');
  const rest = await read(session, { until: 'rest' });
  expect(rest.at(-1)).toMatchObject({
    type: 'phase',
    phase: 'approval',
    view: { pending: [{ tool: 'pay' }] },
  });
});

test('a reader stays while the session goes on in new runs', async () => {
  const { session } = await open(3);
  const parts: StreamPart[] = [];
  const reading = read(session, { until: 'closed' }, (part) => parts.push(part));
  const said = [...Array(6).keys()].map((n) => `look ${n}`);
  await say(session, ...said);
  await session.cancel();
  await reading;
  expect(texts(parts, 'user')).toEqual(said);
  expect(screens(parts)).toEqual(texts(parts, 'assistant'));
  expect(parts.filter((part) => part.type === 'run' && part.cause === 'continued').length).toBeGreaterThan(1);
  expect(new Set(durable(parts).map(({ cursor }) => cursor)).size).toBeGreaterThan(30);
});

test('a reader stays when the session is rewound; who comes back from before is told so', async () => {
  const { stage, session } = await open();
  await say(session, 'one');
  const checkpointId = (await new TemporalSaver(stage.client).get(session.id))?.id ?? '';
  const parts: StreamPart[] = [];
  const reading = read(session, { until: 'closed' }, (part) => parts.push(part));
  await say(session, 'two');
  await expect.poll(() => texts(parts, 'assistant')).toHaveLength(1);
  const cursor = durable(parts).at(-1)?.cursor ?? '';
  await stage.sessions.rewind({ sessionId: session.id, checkpointId }, { by: 'ada', reason: 'again' });
  await expect.poll(() => parts.filter(({ type }) => type === 'run')).toHaveLength(1);
  await until(session, ({ phase }) => phase === 'idle');
  // Beside the open stream as without one.
  expect(await rejection(session.stream({ since: cursor }).next())).toMatchObject({
    code: 'CHECKPOINT_NOT_FOUND',
  });
  await say(session, 'three');
  await session.cancel();
  await reading;
  const told = parts.flatMap((part) => {
    if (part.type === 'run') return [part.cause];
    if (part.type === 'transcript') return [`from ${part.from}`];
    return part.type === 'message' && part.role === 'user' ? [part.text] : [];
  });
  expect(told).toEqual(['two', 'rewound', 'from 2', 'three']);
  expect(await rejection(session.stream({ since: cursor }).next())).toMatchObject({
    code: 'CHECKPOINT_NOT_FOUND',
    message: expect.stringMatching(/rewound.*Read its transcript again/),
    details: { field: 'since', cursor },
  });
});

test('a reader stays when somebody resets the session in Temporal', async () => {
  const { stage, session } = await open();
  await say(session, 'one');
  const { runId, eventId } = await resetPoint(stage, session);
  const parts: StreamPart[] = [];
  const reading = read(session, { since: 'start', until: 'closed' }, (part) => parts.push(part));
  await say(session, 'two');
  await stage.client.workflowService.resetWorkflowExecution({
    namespace: stage.client.options.namespace,
    workflowExecution: { workflowId: session.id, runId },
    reason: 'test',
    requestId: crypto.randomUUID(),
    workflowTaskFinishEventId: eventId,
  });
  await expect
    .poll(() => parts.flatMap((part) => (part.type === 'run' ? [part.cause] : [])))
    .toEqual(['reset']);
  await say(session, 'three');
  await session.cancel();
  await reading;
  expect(texts(parts, 'user').at(-1)).toBe('three');
  expect(parts.at(-1)).toMatchObject({ type: 'phase', phase: 'closed' });
});

async function resetPoint(stage: Stage, { id }: Session) {
  const { runId } = await stage.client.workflow.getHandle(id).describe();
  const { events } = await stage.client.workflow.getHandle(id, runId).fetchHistory();
  const task = events?.findLast((event) => event.workflowTaskCompletedEventAttributes);
  return { runId, eventId: task?.eventId ?? null };
}

test('a stream that is opened right after a message shows its answer, also beside a stream that is open', async () => {
  const { session } = await open();
  await say(session, 'hello');
  const parts: StreamPart[] = [];
  const reading = read(session, { until: 'closed' }, (part) => parts.push(part));
  await expect.poll(() => parts.length).toBeGreaterThan(0);
  for (let n = 0; n < 10; n++) {
    await session.send(`hello ${n}`);
    const last = (await read(session)).at(-1);
    expect(last).toMatchObject({ phase: 'idle', view: { lastText: `hello ${n}: nothing` } });
  }
  await session.cancel();
  await reading;
});

test('the JSON of a tool call comes as the model writes it', async () => {
  const { opens, open: mayAnswer } = gate();
  const { session } = await open(undefined, opens);
  await session.send('look around');
  const parts = await read(session, {}, (part) => {
    if (isThinking(part)) mayAnswer();
  });
  const written = parts.flatMap((part) => (part.type === 'tool_input' ? [part] : []));
  expect(new Set(written.map(({ name }) => name))).toEqual(new Set(['look']));
  expect(JSON.parse(written.map(({ text }) => text).join(''))).toEqual({ what: 'look around' });
  const kinds = parts.map(({ type }) => type);
  expect(kinds.indexOf('tool_input')).toBeLessThan(kinds.indexOf('call'));
});

test('a cursor of a run that is gone, or that is none, is refused with what to do', async () => {
  const { stage, session } = await open(3);
  await say(session, 'look 1');
  const { runId } = await session.state();
  const cursor = await session.cursor();
  await say(session, 'look 2', 'look 3', 'look 4');
  await deleteRun(stage.client, session.id, runId);
  await untilGone(stage.client, session.id, runId);
  expect(await rejection(session.stream({ since: cursor }).next())).toMatchObject({
    code: 'CHECKPOINT_NOT_FOUND',
    message: expect.stringMatching(/retention has removed it.*Read its transcript again/),
  });
  for (const since of ['nonsense', '1:2:3:4'])
    expect(await rejection(session.stream({ since }).next())).toMatchObject({
      code: 'INVALID_ARGUMENT',
      details: { field: 'since' },
    });
  const until = 'bedtime' as 'idle';
  expect(await rejection(session.stream({ until }).next())).toMatchObject({ details: { field: 'until' } });
});

test('a session that was terminated in Temporal says so, and the stream ends', async () => {
  const { stage, session } = await open();
  await session.send('pay rent');
  const parts = await read(session, {}, async (part) => {
    if (part.type === 'approval') await stage.client.workflow.getHandle(session.id).terminate('enough');
  });
  expect(parts.slice(-2)).toMatchObject([
    { type: 'closed', status: { kind: 'ended', run: 'terminated', reason: 'enough' } },
    { type: 'phase', phase: 'closed' },
  ]);
  expect((await read(session)).map(({ type }) => type)).toEqual(['closed', 'phase']);
  const since = durable(parts).at(-2)?.cursor;
  expect(await read(session, { since })).toMatchObject([
    { type: 'reset' },
    { type: 'phase', phase: 'closed' },
  ]);
});

test('each token of a worker in this process is a part of its own, and who comes late gets what was said so far', async () => {
  const { opens, open: mayAnswer } = gate();
  const { stage, session } = await open(undefined, opens);
  const describes = vi.spyOn(stage.client.workflowService, 'describeWorkflowExecution');
  const queries = vi.spyOn(stage.client.workflowService, 'queryWorkflow');
  await session.send('talk');
  let late: Promise<StreamPart[]> | undefined;
  let pieces = 0;
  let described = 0;
  const parts = await read(session, {}, (part) => {
    if (isThinking(part)) mayAnswer();
    if (part.type !== 'text') return;
    pieces += 1;
    if (pieces === 1) describes.mockClear();
    if (pieces === 20) late = read(session);
    described = describes.mock.calls.length;
  });
  expect(parts.filter(({ type }) => type === 'text')).toHaveLength(60);
  expect(screens(parts)).toEqual([words(60)]);
  const second = (await late) ?? [];
  const texts = second.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  expect(texts[0]?.split(' ').length).toBeGreaterThan(15);
  expect(screens(second)).toEqual([words(60)]);
  // One for the second stream, and no other while the model speaks.
  expect(described).toBe(1);
  expect(queries).not.toHaveBeenCalled();
});

test('an open stream of a session that does nothing asks the server for nothing but its long poll', async () => {
  const { stage, session } = await open();
  await say(session, 'hello');
  const parts = session.stream({ until: 'closed' });
  expect((await parts.next()).value).toMatchObject({ type: 'phase', phase: 'idle' });
  const { workflowService: service } = stage.client;
  const polls = vi.spyOn(service, 'getWorkflowExecutionHistory');
  const others = (
    ['describeWorkflowExecution', 'queryWorkflow', 'getWorkflowExecutionHistoryReverse'] as const
  ).map((name) => vi.spyOn(service, name));
  const next = parts.next();
  // The server answers an idle poll after 20 s.
  await expect.poll(() => polls.mock.calls.length, { timeout: 40_000 }).toBeGreaterThan(0);
  for (const other of others) expect(other).not.toHaveBeenCalled();
  for (const [request] of polls.mock.calls) expect(request).toMatchObject({ waitNewEvent: true });
  await session.cancel();
  expect((await next).value).toMatchObject({ type: 'closed' });
  await parts.return(undefined);
});

test('above the number of long polls a session is followed by looks, and nothing is lost', async () => {
  const { session } = await open();
  const { max } = longPolls;
  onTestFinished(() => {
    longPolls.max = max;
  });
  longPolls.max = 0;
  const parts: StreamPart[] = [];
  const reading = read(session, { since: 'start', until: 'closed' }, (part) => parts.push(part));
  await say(session, 'look 1', 'look 2');
  await session.cancel();
  await reading;
  longPolls.max = max;
  expect(durable(parts)).toEqual(durable(await read(session, { since: 'start' })));
});

test('a reader who stops reading does not get the rest of a long history into memory, and loses nothing', async () => {
  const { stage, session } = await open(3);
  const said = [...Array(8).keys()].map((n) => `look ${n}`);
  await say(session, ...said);
  await session.cancel();
  await session.result();
  const whole = durable(await read(session, { since: 'start' }));
  const runs = new Set(whole.map(({ cursor }) => cursor.split(':')[0]));
  expect(runs.size).toBeGreaterThan(3);

  const { parts } = readAhead;
  onTestFinished(() => {
    readAhead.parts = parts;
  });
  readAhead.parts = 3;
  const followed = vi.spyOn(stage.client.workflowService, 'getWorkflowExecutionHistory');
  const slow = session.stream({ since: 'start' });
  const seen = [(await slow.next()).value as StreamPart];
  // Another reader gets to the present beside it.
  expect(durable(await read(session, { since: whole.at(-2)?.cursor ?? '' }))).toEqual(whole.slice(-1));
  const asked = followed.mock.calls.filter(([request]) => 'waitNewEvent' in request && request.waitNewEvent);
  // The first run for the slow reader, and the last one for the other.
  const ends = [whole[0], whole.at(-1)].map((part) => part?.cursor.split(':')[0]);
  expect(new Set(asked.map(([{ execution }]) => execution?.runId))).toEqual(new Set(ends));
  for await (const part of slow) seen.push(part);
  expect(durable(seen)).toEqual(whole);
});
