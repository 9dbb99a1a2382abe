import type { ClientInterceptors } from '@temporalio/client';
import type { PayloadCodec } from '@temporalio/common';
import { expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import type { ErrorBody } from '../../src/http/errors.ts';
import {
  type BudgetView,
  type CallsPage,
  type Checkpoint,
  type DefinedAgent,
  defineAgent,
  defineTool,
  type PendingCall,
  type Phase,
  type PlanStep,
  type SessionSummary,
  type SessionView,
  TemporalSaver,
  type TranscriptPage,
} from '../../src/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { UPDATE } from '../../src/workflows/index.ts';
import { polled } from '../support/polled.ts';
import { openStage, type RunningWorker, type Stage } from '../support/stage.ts';
import { openApi, type ServedApi } from './support/api.ts';

const PLAN = { steps: [{ id: 's1', title: 'Look', postconditions: [], evidence: [], status: 'pending' }] };

const MESSAGE = { id: 'm', role: 'user', created_at: '2026-01-01T00:00:00.000Z' };

/** What a person says decides what the model does. */
const script: Script = ({ lastUserText, stepInTurn }) => {
  const [verb, chargeId = '', cents = ''] = lastUserText.split(' ');
  if (stepInTurn > 0) return { text: `done: ${lastUserText}` };
  switch (verb) {
    case 'refund':
      return { toolCalls: [{ name: 'refund', args: { chargeId, cents: Number(cents) } }] };
    case 'plan':
      return { toolCalls: [{ name: 'update_plan', args: PLAN }] };
    case 'hang':
      return { fault: 'hang', afterChunks: 1, reply: { text: 'this will not come to its end' } };
    default:
      return { text: `you said: ${lastUserText}` };
  }
};

function support(stage: Stage): DefinedAgent {
  return defineAgent({
    name: 'support',
    model: { model: stage.provider('scripted'), price: { inputPerMillion: 1, outputPerMillion: 2 } },
    instructions: 'Help with refunds.',
    plan: true,
    tools: {
      refund: defineTool({
        inputSchema: z.object({ chargeId: z.string(), cents: z.number().int().positive() }),
        needsApproval: ({ cents }) => cents > 5_000,
        settle: '1ms',
        execute: ({ chargeId, cents }) => {
          if (chargeId === 'lost') throw new Error('the connection was lost');
          return { refunded: cents };
        },
      }),
    },
  });
}

/** A stage with the API beside it. */
interface HttpStage extends ServedApi {
  stage: Stage;
  worker: RunningWorker;
  /** Starts a session over HTTP; its path. */
  begin(text?: string): Promise<string>;
  /** Waits until a session is in a phase. */
  until(path: string, ...phases: Phase[]): Promise<SessionView>;
}

async function open(interceptors: ClientInterceptors = {}): Promise<HttpStage> {
  const stage = await openStage(script);
  const { taskQueue, client } = stage;
  const worker = await stage.startWorker([support(stage)]);
  const api = await openApi(new TemporalSaver(client, { taskQueue }), { taskQueue, interceptors });
  onTestFinished(() => api.close());
  return {
    ...api,
    stage,
    worker,
    begin: async (text) => {
      const id = stage.id();
      const message = text === undefined ? {} : { message: { text } };
      const started = await api.call('POST /sessions', { json: { agent: 'support', id, ...message } });
      expect(started).toMatchObject({ status: 201, body: { id } });
      return `/sessions/${id}`;
    },
    until: async (path, ...phases) => {
      let view: SessionView | undefined;
      await polled(
        async () => {
          view = (await api.call<SessionView>(`GET ${path}`)).body;
          return phases.includes(view.phase);
        },
        () => JSON.stringify(view),
      );
      return view as SessionView;
    },
  };
}

test('a queued message is seen, changed and withdrawn', async () => {
  const { call, begin, until } = await open();
  const path = await begin('refund ch_1 9000');
  await until(path, 'approval');
  await call(`POST ${path}/messages`, { json: { text: 'hurry', id: 'm1' } });
  const changed = await call(`PUT ${path}/queue/m1`, { json: { text: 'take your time', by: 'ada' } });
  expect(changed).toMatchObject({ status: 200, body: { phase: 'approval', queued: 1 } });
  const items = [{ id: 'm1', text: 'take your time', edited: { by: 'ada' } }];
  expect((await call(`GET ${path}/queue`)).body).toMatchObject({ items });
  const withdrawn = await call(`POST ${path}/queue/m1/withdrawal`, { json: { by: 'ada' } });
  expect(withdrawn).toMatchObject({ status: 200, body: { queued: 0 } });
  const unknown = await call(`PUT ${path}/queue/m2`, { json: { text: 'x' } });
  expect(unknown).toMatchObject({ status: 409, code: 'MESSAGE_NOT_QUEUED' });
});

test('a session is started, decided, inspected, sent to and listed', async () => {
  const { call, begin, until, stage } = await open();
  const path = await begin('refund ch_1 9000');
  await until(path, 'approval');
  const pending = (await call<{ items: PendingCall[] }>(`GET ${path}/approvals`)).body.items;
  expect(pending).toMatchObject([{ callId: 'call_1_0', tool: 'refund', status: { kind: 'approval' } }]);
  const argsDigest = pending[0]?.argsDigest;
  const decide = `POST ${path}/calls/call_1_0/decision`;

  const other = await call(decide, { json: { decision: 'approve', argsDigest: 'another' } });
  expect(other).toMatchObject({ status: 409, code: 'DIGEST_MISMATCH' });
  expect(other.body).toMatchObject({ error: { details: { callId: 'call_1_0', argsDigest } } });
  const nobody = await call(`POST ${path}/calls/call_9_9/decision`, {
    json: { decision: 'approve', argsDigest },
  });
  expect(nobody).toMatchObject({ status: 404, code: 'UNKNOWN_CALL' });
  const unbound = await call(decide, { json: { decision: 'approve' } });
  expect(unbound).toMatchObject({ status: 400, code: 'INVALID_ARGUMENT' });
  const worse = { decision: 'edit', args: { chargeId: 'ch_1', cents: -1 }, argsDigest };
  const edited = await call(decide, { json: worse });
  expect(edited).toMatchObject({ status: 422, code: 'INVALID_TOOL_INPUT' });
  const approved = await call(decide, { json: { decision: 'approve', by: 'ada', argsDigest } });
  expect(approved).toMatchObject({ status: 200, body: { callId: 'call_1_0' } });
  const late = await call(decide, { json: { decision: 'reject', reason: 'no', argsDigest } });
  expect(late).toMatchObject({ status: 409, code: 'CALL_NOT_PENDING' });
  const won = { decision: 'approve', by: 'ada', at: expect.stringMatching(/Z$/) };
  expect(late.body).toMatchObject({ error: { details: { callId: 'call_1_0', decision: won } } });

  expect((await until(path, 'idle')).lastText).toBe('done: refund ch_1 9000');
  const calls = (await call<CallsPage>(`GET ${path}/calls`)).body;
  expect(calls).toMatchObject({
    first: 0,
    total: 1,
    items: [{ id: 'call_1_0', status: { kind: 'completed' }, decision: { decision: 'approve', by: 'ada' } }],
  });

  const headers = { 'idempotency-key': 'm-1' };
  for (let time = 0; time < 2; time++) {
    const sent = await call(`POST ${path}/messages`, { json: { text: 'plan', by: 'ada' }, headers });
    expect(sent.status).toBe(200);
  }
  await until(path, 'idle');
  const { items, total } = (await call<TranscriptPage>(`GET ${path}/transcript`)).body;
  expect(items.filter(({ role }) => role === 'user').map(({ id }) => id)).toHaveLength(2);
  // Nothing is summarized: the model sees it all.
  expect((await call<TranscriptPage>(`GET ${path}/view`)).body).toEqual({ items });
  const page = await call<TranscriptPage>(`GET ${path}/transcript?before=${total - 1}&limit=2`);
  expect(page.body).toEqual({ items: items.slice(-3, -1), first: total - 3, total });
  expect((await call<{ steps: PlanStep[] }>(`GET ${path}/plan`)).body.steps).toMatchObject([{ id: 's1' }]);

  expect(
    (await call(`PUT ${path}/budget`, { json: { limits: { turns: 50, usd: 2 }, by: 'ada' } })).status,
  ).toBe(200);
  const { limits, spent } = (await call<BudgetView>(`GET ${path}/budget`)).body;
  expect(limits).toEqual({ turns: 50, usd: 2 });
  expect(spent).toMatchObject({ turns: 4, toolCalls: 1 });

  const again = await call('POST /sessions', { json: { agent: 'support', id: path.split('/')[2] } });
  expect(again).toMatchObject({ status: 409, code: 'SESSION_EXISTS' });
  await expect
    .poll(async () => {
      const list = await call<{ items: SessionSummary[] }>(
        'GET /sessions?agent=support&status=active&limit=1000',
      );
      return list.body.items.map(({ id }) => `/sessions/${id}`);
    })
    .toContain(path);
  expect((await call('GET /sessions?limit=0')).body).toEqual({ items: [] });
  expect(stage.model).toBeDefined();
});

test('what became of a call is said, and the past and the plan are edited', async () => {
  const { call, begin, until } = await open();
  const path = await begin('refund lost 100');
  await until(path, 'unknown_effect');
  const busy = await call(`POST ${path}/edit`, { json: { scratchpadRoot: 'x', by: 'ada', reason: 'test' } });
  expect(busy).toMatchObject({ status: 409, code: 'SESSION_BUSY' });
  const resolve = `POST ${path}/calls/call_1_0/resolution`;
  const [seen] = (await call<{ items: PendingCall[] }>(`GET ${path}/approvals`)).body.items;
  const { argsDigest = '' } = seen ?? {};
  expect(seen?.dispatchNo).toBe(1);
  const json = { outcome: 'landed', output: { refunded: 100 }, by: 'ada', argsDigest, dispatchNo: 1 };
  for (const [changed, code] of [
    [{ dispatchNo: undefined }, 'INVALID_ARGUMENT'],
    [{ argsDigest: undefined }, 'INVALID_ARGUMENT'],
    [{ dispatchNo: 0 }, 'DISPATCH_MISMATCH'],
    [{ argsDigest: 'another' }, 'DIGEST_MISMATCH'],
  ] as const) {
    expect(await call(resolve, { json: { ...json, ...changed } })).toMatchObject({ code });
  }
  expect(await call(resolve, { json })).toMatchObject({ status: 200, body: { callId: 'call_1_0' } });
  await until(path, 'idle');
  expect(await call(resolve, { json })).toMatchObject({ status: 409, code: 'CALL_NOT_PENDING' });
  const { items } = (await call<CallsPage>(`GET ${path}/calls`)).body;
  expect(items[0]?.resolutions).toMatchObject([{ dispatchNo: 1, outcome: 'landed', by: 'ada' }]);

  const edit = { plan: PLAN.steps, by: 'ada', reason: 'by hand' };
  expect((await call(`POST ${path}/edit`, { json: edit })).status).toBe(200);
  expect((await call<{ steps: PlanStep[] }>(`GET ${path}/plan`)).body.steps).toMatchObject([
    { title: 'Look' },
  ]);
});

test('a session is paused, resumed and cancelled, and reads the same when it is closed and no worker runs', async () => {
  const { call, begin, until, worker } = await open();
  const path = await begin('hello');
  await until(path, 'idle');
  // There is nothing that must be said of a pause.
  expect(await call(`POST ${path}/pause`)).toMatchObject({ status: 202 });
  await until(path, 'paused');
  expect(await call(`POST ${path}/resume`, { json: { by: 'ada' } })).toMatchObject({ status: 202 });
  await until(path, 'idle');
  expect(await call(`POST ${path}/cancel`, { json: { by: 'ada', reason: 'enough' } })).toMatchObject({
    status: 202,
  });
  await until(path, 'closed');
  for (const route of ['messages', 'cancel', 'pause']) {
    const answer = await call(`POST ${path}/${route}`, {
      json: route === 'messages' ? { text: 'more' } : {},
    });
    expect(answer, route).toMatchObject({ status: 409, code: 'SESSION_CLOSED' });
  }
  expect(await call(`POST ${path}/cancel`, { json: { undo: true } })).toMatchObject({ status: 202 });
  await until(path, 'closed');
  const routes = ['', '/transcript', '/calls', '/approvals', '/budget', '/plan'].map(
    (part) => `GET ${path}${part}`,
  );
  const read = (): Promise<unknown[]> => Promise.all(routes.map(async (route) => (await call(route)).body));
  const before = await read();
  await worker.stop();
  expect(await read()).toEqual(before);
});

test('with no worker a session is started and looked at, and what needs one says so', async () => {
  const { call, begin, worker } = await open();
  await worker.stop();
  const path = await begin('hello');
  const view = await call<SessionView>(`GET ${path}`);
  expect(view).toMatchObject({ status: 200, body: { agent: 'support', status: { kind: 'active' } } });
  expect(await call(`POST ${path}/pause`, { json: { by: 'ada' } })).toMatchObject({ status: 202 });
  expect(await call(`POST ${path}/messages`, { json: { text: 'more' } })).toMatchObject({
    status: 503,
    code: 'NO_WORKER',
  });
});

test('a session goes on from a checkpoint, as another one or itself', async () => {
  const { call, begin, until, stage } = await open();
  const path = await begin('hello');
  await until(path, 'idle');
  const id = path.split('/')[2] ?? '';
  const latest = (await call<Checkpoint>(`GET /threads/${id}/latest`)).body;
  expect(latest).toMatchObject({ thread_id: id, state: { sessionId: id }, metadata: { phase: 'idle' } });
  await call(`POST ${path}/messages`, { json: { text: 'forget this' } });
  await until(path, 'idle');

  const from = { checkpointId: latest.id, by: 'ada', reason: 'try again' };
  const fork = { ...from, id: stage.id('fork'), message: { text: 'from there' } };
  expect(await call(`POST ${path}/fork`, { json: { ...fork, agent: 'another' } })).toMatchObject({
    status: 400,
    body: { error: { code: 'INVALID_ARGUMENT', details: { field: 'agent' } } },
  });
  const forked = await call(`POST ${path}/fork`, { json: fork });
  expect(forked).toMatchObject({ status: 201, body: { id: fork.id } });
  const texts = async (of: string): Promise<string[]> => {
    const { items } = (await call<TranscriptPage>(`GET ${of}/transcript`)).body;
    return items.flatMap(({ blocks }) =>
      blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : [])),
    );
  };
  await expect
    .poll(() => texts(`/sessions/${fork.id}`), { timeout: 60_000 })
    .toEqual(['hello', 'you said: hello', 'from there', 'you said: from there']);
  expect(await texts(path)).toContain('forget this');

  const back = await call(`POST ${path}/rewind`, { json: { ...from, confirm: true } });
  expect(back).toMatchObject({ status: 200, body: { id, effects: [] } });
  await expect.poll(() => texts(path), { timeout: 60_000 }).toEqual(['hello', 'you said: hello']);
  const bad = await call(`POST ${path}/fork`, { json: { ...from, checkpointId: 'nowhere' } });
  expect(bad).toMatchObject({ status: 400, code: 'INVALID_ARGUMENT' });

  const put = await call(`PUT /threads/${id}/checkpoints`, { json: { state: {} } });
  expect(put).toMatchObject({ status: 400, code: 'INVALID_ARGUMENT' });
  expect(await call(`DELETE /threads/${id}`)).toMatchObject({ status: 409, code: 'SESSION_BUSY' });
  expect(await call(`DELETE /threads/${id}?end=true`)).toMatchObject({ status: 204 });
  expect(await call(`GET ${path}`)).toMatchObject({ status: 404, code: 'SESSION_NOT_FOUND' });
});

test('edits of the past are made before a session goes on from it, and refused where it would begin without them', async () => {
  const { call, begin, until, stage } = await open();
  const path = await begin('refund ch_1 100');
  await until(path, 'idle');
  const id = path.split('/')[2] ?? '';
  const { items } = (await call<{ items: Checkpoint[] }>(`GET /threads/${id}/checkpoints?limit=100`)).body;
  const between = items[0]?.id;
  const acting = items.find(({ metadata }) => metadata['phase'] === 'acting')?.id;
  const who = { by: 'ada', reason: 'a typo', confirm: true };
  const rows: [checkpointId: string | undefined, edits: object, problem: string][] = [
    [acting, { plan: [] }, 'edits: a turn was running'],
    [between, { transcript: { from: 99, messages: [] } }, 'edits: transcript.from is 99'],
    [between, { digest: 'another', plan: [] }, 'edits: the transcript has changed'],
  ];
  for (const [checkpointId, edits, problem] of rows) {
    const { confirm: _, ...fork } = { ...who, checkpointId, edits, id: stage.id('refused') };
    for (const [verb, json] of [
      ['fork', fork],
      ['rewind', { ...who, checkpointId, edits }],
    ] as const) {
      const refused = await call(`POST ${path}/${verb}`, { json });
      expect(refused).toMatchObject({ status: 400, code: 'INVALID_ARGUMENT' });
      expect(refused.message).toContain(problem);
    }
    expect(await call(`GET /sessions/${fork.id}`)).toMatchObject({ status: 404 });
  }
  const edits = { plan: PLAN.steps };
  const fork = { by: 'ada', reason: 'a typo', checkpointId: between, edits, id: stage.id('fork') };
  expect(await call(`POST ${path}/fork`, { json: fork })).toMatchObject({ status: 201 });
  const rewind = { ...who, checkpointId: between, edits };
  expect(await call(`POST ${path}/rewind`, { json: rewind })).toMatchObject({ status: 200 });
  for (const of of [`/sessions/${fork.id}`, path]) {
    await expect
      .poll(async () => (await call(`GET ${of}/plan`)).body, { timeout: 60_000 })
      .toMatchObject({ steps: [{ title: 'Look' }] });
  }
});

test('a rewind shows the effects that it does not undo, and does nothing before it is confirmed', async () => {
  const { call, begin, until } = await open();
  const path = await begin('refund ch_1 100');
  await until(path, 'idle');
  const id = path.split('/')[2] ?? '';
  const { id: checkpointId } = (await call<Checkpoint>(`GET /threads/${id}/latest`)).body;
  await call(`POST ${path}/messages`, { json: { text: 'refund ch_2 200' } });
  await until(path, 'idle');

  const rewind = `POST ${path}/rewind`;
  const json = { checkpointId, by: 'ada', reason: 'again', message: { text: 'refund ch_2 200' } };
  const effects = [
    {
      callId: 'call_3_0',
      tool: 'refund',
      again: 'answered',
      args: { chargeId: 'ch_2', cents: 200 },
      output: { refunded: 200 },
      completedAt: expect.any(String),
    },
  ];
  for (const body of [json, { ...json, confirm: false }]) {
    const asked = await call<ErrorBody>(rewind, { json: body });
    expect(asked).toMatchObject({ status: 400, code: 'INVALID_ARGUMENT' });
    expect(asked.body.error.details).toEqual({ field: 'confirm', effects });
  }
  expect((await call<SessionView>(`GET ${path}`)).body).toMatchObject({ turn: 4, calls: 2 });

  const missing = { ...json, checkpointId: `${checkpointId}0`, confirm: true };
  expect(await call(rewind, { json: missing })).toMatchObject({ status: 404, code: 'CHECKPOINT_NOT_FOUND' });
  const nobody = await call('POST /sessions/nobody/rewind', { json: { ...json, confirm: true } });
  expect(nobody).toMatchObject({ status: 404, code: 'SESSION_NOT_FOUND' });
  await call('PUT /threads/a-thread/checkpoints', { json: { state: {}, id: checkpointId } });
  const thread = await call('POST /sessions/a-thread/rewind', { json: { ...json, confirm: true } });
  expect(thread).toMatchObject({ status: 404, code: 'SESSION_NOT_FOUND' });

  const done = await call(rewind, { json: { ...json, confirm: true } });
  expect(done).toMatchObject({ status: 200, body: { id, effects } });
  await expect
    .poll(async () => (await call<SessionView>(`GET ${path}`)).body, { timeout: 60_000 })
    .toMatchObject({ phase: 'idle', turn: 4 });
  const { items } = (await call<CallsPage>(`GET ${path}/calls`)).body;
  expect(items.map(({ replayOf }) => replayOf !== null)).toEqual([false, true]);
});

test('a rewind answers with the effects that completed while it was asked for, too', async () => {
  let beforeSeal = async (): Promise<unknown> => undefined;
  const { call, begin, until, stage } = await open({
    workflow: [
      {
        startUpdate: async (input, next) => {
          if (input.updateName === UPDATE.seal) await beforeSeal();
          return next(input);
        },
      },
    ],
  });
  const path = await begin('refund ch_1 100');
  await until(path, 'idle');
  const id = path.split('/')[2] ?? '';
  const { id: checkpointId } = (await call<Checkpoint>(`GET /threads/${id}/latest`)).body;
  beforeSeal = async () => {
    await stage.sessions.get(id).send('refund ch_2 200');
    await until(path, 'idle');
  };
  const json = { checkpointId, by: 'ada', reason: 'again', confirm: true };
  expect(await call(`POST ${path}/rewind`, { json })).toMatchObject({
    status: 200,
    body: {
      id,
      effects: [{ tool: 'refund', args: { chargeId: 'ch_2', cents: 200 }, output: { refunded: 200 } }],
    },
  });
  beforeSeal = async () => undefined;
  // Taken back again: what a run before the last has left is still known.
  expect(await call(`POST ${path}/rewind`, { json })).toMatchObject({
    status: 200,
    body: { id, effects: [{ tool: 'refund', output: { refunded: 200 } }] },
  });
});

test('of two who take a session back at once, one is told that somebody else has', async () => {
  let meanwhile = async (): Promise<unknown> => undefined;
  const { call, begin, until, stage } = await open({
    workflow: [
      {
        startWithDetails: async (input, next) => {
          await meanwhile();
          return next(input);
        },
      },
    ],
  });
  const path = await begin('hello');
  await until(path, 'idle');
  const id = path.split('/')[2] ?? '';
  const { id: checkpointId } = (await call<Checkpoint>(`GET /threads/${id}/latest`)).body;
  const who = { by: 'ada', reason: 'again' };
  meanwhile = () =>
    stage.sessions.rewind(
      { sessionId: id, checkpointId },
      { ...who, agent: 'support', message: 'refund ch_1 100' },
    );
  const json = { ...who, checkpointId, confirm: true };
  const late = await call(`POST ${path}/rewind`, { json });
  expect(late).toMatchObject({ status: 409, code: 'CONFLICT' });
  expect(late.message).toContain('List its checkpoints again');
  await until(path, 'idle');
  const { items } = (await call<CallsPage>(`GET ${path}/calls`)).body;
  expect(items).toMatchObject([{ name: 'refund', status: { kind: 'completed' } }]);
});

test('a rewind of a session that was terminated lists the mutation of which nobody knows what became', async () => {
  const { call, begin, until, stage } = await open();
  const path = await begin('hello');
  await until(path, 'idle');
  const id = path.split('/')[2] ?? '';
  const { id: checkpointId } = (await call<Checkpoint>(`GET /threads/${id}/latest`)).body;
  await call(`POST ${path}/messages`, { json: { text: 'refund lost 200' } });
  await until(path, 'unknown_effect');
  const rewind = `POST ${path}/rewind`;
  const json = { checkpointId, by: 'ada', reason: 'again', message: { text: 'refund lost 200' } };
  const busy = await call(rewind, { json: { ...json, confirm: true } });
  expect(busy).toMatchObject({ status: 409, code: 'SESSION_BUSY' });

  await stage.client.workflow.getHandle(id).terminate('a person at work');
  const effects = [
    {
      callId: 'call_2_0',
      tool: 'refund',
      again: 'doubtful',
      args: { chargeId: 'lost', cents: 200 },
      output: null,
      completedAt: null,
    },
  ];
  const asked = await call<ErrorBody>(rewind, { json });
  expect(asked.body.error.details).toEqual({ field: 'confirm', effects });
  const done = await call(rewind, { json: { ...json, confirm: true } });
  expect(done).toMatchObject({ status: 200, body: { id, effects } });
  await until(path, 'unknown_effect');
});

/** Reads server-sent events until one satisfies a condition, or the end. */
async function events(
  api: ServedApi,
  path: string,
  last: (name: string, seen: string[]) => boolean = () => false,
  { query = '', lastEventId }: { query?: string; lastEventId?: string } = {},
): Promise<{ id?: string; name: string; data: Record<string, unknown> }[]> {
  const response = await fetch(`${api.url}${path}/stream${query}`, {
    headers: {
      authorization: `Bearer ${api.token}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
  });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const found: { id?: string; name: string; data: Record<string, unknown> }[] = [];
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const [, id, name = '', data = '{}'] =
        /^(?:id: (.*)\n)?event: (.*)\ndata: (.*)$/.exec(text.slice(0, end)) ?? [];
      text = text.slice(end + 2);
      if (name === '') continue;
      found.push({
        ...(id === undefined ? {} : { id }),
        name,
        data: JSON.parse(data) as Record<string, unknown>,
      });
      if (
        last(
          name,
          found.map((event) => event.name),
        )
      )
        return found;
    }
  }
  return found;
}

test('a session is followed live until it rests', async () => {
  const http = await open();
  const path = await http.begin('hello');
  const seen = await events(http, path);
  expect(seen.at(-1)).toEqual({ name: 'end', data: {} });
  const { data } = seen.findLast(({ name }) => name === 'phase') ?? { data: {} };
  expect(data).toMatchObject({ phase: 'idle', view: { lastText: 'you said: hello' } });
  for (const { id: cursor, data: part } of seen) expect(part['cursor']).toBe(cursor);
  const whole = (await events(http, path, undefined, { query: '?since=start' })).filter(({ id }) => id);
  expect(whole.length).toBeGreaterThan(5);
  const middle = whole[3]?.id ?? '';
  // As a browser does it, which repeats the address of its first request.
  const rest = await events(http, path, undefined, { query: '?since=start', lastEventId: middle });
  expect(rest.filter(({ id }) => id)).toEqual(whole.slice(4));
  const wrong = { status: 400, code: 'INVALID_ARGUMENT' };
  expect(await http.call(`GET ${path}/stream?until=never`)).toMatchObject(wrong);
  expect(await http.call(`GET ${path}/stream?since=never`)).toMatchObject(wrong);
  expect(await http.call('GET /sessions/nobody/stream')).toMatchObject({
    status: 404,
    code: 'SESSION_NOT_FOUND',
  });
});

test('a stream has no end when the server closes, and stops when its reader goes', async () => {
  const http = await open();
  const path = await http.begin('hang');
  await http.until(path, 'thinking');
  const gone = await events(http, path, (name) => name === 'phase');
  expect(gone.at(-1)?.name).toBe('phase');
  const api = await openApi(new TemporalSaver(http.stage.client), { taskQueue: http.stage.taskQueue });
  let closed: Promise<void> | undefined;
  const seen = await events(api, path, (name) => {
    if (name === 'phase') closed = api.close();
    return false;
  });
  expect(seen.map(({ name }) => name)).not.toContain('end');
  await closed;
  await http.call(`POST ${path}/pause`, { json: { now: true, by: 'ada' } });
  await http.until(path, 'paused');
  // The reader connects to the next server with the last cursor, and misses nothing.
  const lastEventId = seen.findLast(({ id }) => id !== undefined)?.id ?? '';
  const rest = await events(http, path, (name) => name === 'pause', { lastEventId });
  expect(rest.at(-1)).toMatchObject({ name: 'pause', data: { paused: { by: 'ada' } } });
});

test('an error that a stream meets is reported, and its reader learns nothing of it', async () => {
  const http = await open();
  const { client, taskQueue } = http.stage;
  const path = await http.begin('hello');
  await http.until(path, 'idle');
  let isOut = false;
  const codec: PayloadCodec = {
    encode: async (payloads) => payloads,
    decode: async (payloads) => {
      if (isOut) throw new Error('the key server is out');
      return payloads;
    },
  };
  const api = await openApi(new TemporalSaver(client, { taskQueue }), { taskQueue, codec });
  onTestFinished(() => api.close());
  let sent: Promise<unknown> | undefined;
  const query = '?until=closed';
  const say = (name: string): boolean => {
    if (name !== 'phase' || sent !== undefined) return false;
    isOut = true;
    sent = http.call(`POST ${path}/messages`, { json: { text: 'hello again' } });
    return false;
  };
  const seen = await events(api, path, say, { query });
  await sent;
  const [error] = api.unexpected.splice(0);
  expect(seen.at(-1)).toMatchObject({ name: 'error', data: { error: { code: 'INTERNAL', details: {} } } });
  expect(JSON.stringify(seen.at(-1))).not.toContain('key server');
  expect(String(error)).toContain('the key server is out');
});

test('what is wrong in a request about a session is named', async () => {
  const { call, begin } = await open();
  const path = await begin();
  const long = 'x'.repeat(201);
  const rows: [route: string, json: unknown, field: string][] = [
    ['POST /sessions', {}, 'agent'],
    ['POST /sessions', { agent: '' }, 'agent'],
    ['POST /sessions', { agent: 'support', id: long }, 'id'],
    ['POST /sessions', { agent: 'support', id: ' ' }, 'id'],
    ['POST /sessions', { agent: 'support', id: '..' }, 'id'],
    [`POST ${path}/fork`, { checkpointId: 'x', by: 'ada', reason: 'again', id: '.' }, 'id'],
    ['POST /sessions', { agent: 'support', message: 'hello' }, 'message'],
    ['POST /sessions', { agent: 'support', message: { text: '' } }, 'message.text'],
    ['POST /sessions', { agent: 'support', mode: 'talk' }, 'mode'],
    ['POST /sessions', { agent: 'support', budget: { usd: -1 } }, 'budget.usd'],
    ['POST /sessions', { agent: 'support', budget: { USD: 2 } }, 'budget.USD'],
    ['POST /sessions', { agent: 'support', message: { text: 'x', modus: 'queue' } }, 'message.modus'],
    ['POST /sessions', { agent: 'support', taskQueue: 'other' }, 'taskQueue'],
    [`POST ${path}/messages`, {}, 'text'],
    [`POST ${path}/messages`, { text: 'x', mode: 'later' }, 'mode'],
    [`POST ${path}/calls/call_1_0/decision`, { argsDigest: 'd' }, 'decision'],
    [`POST ${path}/calls/call_1_0/decision`, { decision: 'maybe', argsDigest: 'd' }, 'decision'],
    [`POST ${path}/calls/call_1_0/decision`, { decision: 'edit', argsDigest: 'd' }, 'args'],
    [`POST ${path}/calls/call_1_0/decision`, { decision: 'approve', bye: 'ada', argsDigest: 'd' }, 'bye'],
    [`POST ${path}/calls/call_1_0/decision`, { decision: 'approve', args: {}, argsDigest: 'd' }, 'args'],
    [`POST ${path}/calls/call_1_0/decision`, { decision: 'approve' }, 'argsDigest'],
    [
      `POST ${path}/calls/call_1_0/resolution`,
      { outcome: 'landed', argsDigest: 'd', dispatchNo: 1 },
      'output',
    ],
    [`POST ${path}/calls/call_1_0/resolution`, { outcome: 'absent', argsDigest: 'd' }, 'dispatchNo'],
    [`POST ${path}/pause`, { now: 'yes' }, 'now'],
    [`POST ${path}/edit`, { transcript: { from: -1, messages: [] } }, 'transcript.from'],
    [
      `POST ${path}/edit`,
      {
        transcript: { from: 0, messages: [{ ...MESSAGE, blocks: [{ kind: 'text', text: 'x', texts: [] }] }] },
      },
      'transcript.messages.0.blocks.0.texts',
    ],
    [`PUT ${path}/budget`, { limits: { turn: 1 } }, 'limits.turn'],
    [`PUT ${path}/budget`, { limits: { turns: 1.5 } }, 'limits.turns'],
    [`POST ${path}/fork`, { by: 'ada', reason: 'why' }, 'checkpointId'],
    [`POST ${path}/fork`, { checkpointId: 'x', reason: 'why' }, 'by'],
    [`POST ${path}/rewind`, { checkpointId: 'x', by: 'ada' }, 'reason'],
    [`POST ${path}/rewind`, { checkpointId: 'x', by: 'ada', reason: 'why', confirm: 'yes' }, 'confirm'],
    [`POST ${path}/fork`, { checkpointId: 'x', by: 'ada', reason: 'why', confirm: true }, 'confirm'],
    [`POST ${path}/fork`, { checkpointId: 'x', by: 'a', reason: 'b', edits: { plans: [] } }, 'edits.plans'],
    [`GET ${path}/transcript?limit=-1`, undefined, 'limit'],
    [`GET ${path}/calls?before=first`, undefined, 'before'],
    ['GET /sessions?state=active', undefined, 'state'],
    [`GET /sessions/${long}`, undefined, 'id'],
  ];
  for (const [route, json, field] of rows) {
    const { status, code, message } = await call(route, json === undefined ? {} : { json });
    expect({ route, status, code }).toEqual({ route, status: 400, code: 'INVALID_ARGUMENT' });
    expect(message, route).toMatch(new RegExp(`^${field}\\b`));
  }
  const slip = await call(`PUT ${path}/budget`, { json: { limits: { USD: 2 } } });
  expect(slip.message).toBe('limits.USD: is unknown. Known names: turns, toolCalls, tokens, usd, activeMs');
  const large = await call(`POST ${path}/messages`, { json: { text: 'x'.repeat(1_000_001) } });
  expect(large).toMatchObject({ status: 413, code: 'TOO_LARGE' });
  expect(await call('GET /sessions/nobody')).toMatchObject({ status: 404, code: 'SESSION_NOT_FOUND' });
});
