/** Notifications reach a receiver that fails, over the deaths of workers, and never hold up the session. */
import { Webhook as Standard } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { defineAgent, type Webhook } from '../../src/index.ts';
import { decide } from '../support/decide.ts';
import { SECRET } from '../support/notifying-agents.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, untilPhase } from '../support/stage.ts';
import { startWebhookReceiver } from '../support/webhook-receiver.ts';
import { calls, openWorld, PEN } from '../support/world.ts';

/** Retries wait for seconds, and worker processes take some to start. */
const LONG = { timeout: 40_000 };

const MODULE = new URL('../support/notifying-agents.ts', import.meta.url);

/** Fails unless the receiver's own library accepts the signature. */
function verified({ body, headers }: { body: string; headers: object }): unknown {
  return new Standard(SECRET).verify(body, headers as Record<string, string>);
}

test('an approval reaches a receiver that fails and a worker that dies, with one id, and the session goes on meanwhile', async () => {
  const receiver = await startWebhookReceiver();
  const world = await openWorld([calls('refundAsked'), { text: 'Refunded.' }], { module: MODULE });
  const env = { WEBHOOK_URL: receiver.url };
  receiver.answer = 500;
  const first = await world.startWorkerProcess({ env });
  const session = await world.startSession('effects', { message: 'Please.', mode: 'task' });
  await expect.poll(() => receiver.of('session.approval').length, LONG).toBe(1);
  // The next request is never answered: its worker dies with it.
  receiver.answer = 'hang';
  await expect.poll(() => receiver.of('session.approval').length, LONG).toBe(2);
  await first.crash();
  receiver.answer = 500;
  await world.startWorkerProcess({ env });
  await expect.poll(() => receiver.of('session.approval').length, LONG).toBe(3);
  await decide(session, 'call_1_0', { decision: 'approve' }, { by: 'ada' });
  // Neither the turn nor the end waits for the receiver.
  expect(await session.result()).toMatchObject({ status: 'completed' });
  receiver.answer = 204;
  const asked = receiver.of('session.approval').length;
  await expect.poll(() => receiver.of('session.approval').length, LONG).toBeGreaterThan(asked);

  await expect.poll(() => receiver.of('session.end').length, LONG).toBeGreaterThan(0);

  const approvals = receiver.of('session.approval');
  expect(new Set(approvals.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  expect(approvals.map(({ headers }) => Number(headers['perdure-attempt']))).toEqual(
    approvals.map((_, i) => i + 1),
  );
  for (const request of receiver.received) expect(verified(request)).toMatchObject({ type: request.type });
  expect(approvals[0]?.data).toMatchObject({
    session: session.id,
    agent: 'effects',
    callId: 'call_1_0',
    tool: 'refundAsked',
    effect: 'mutate',
    args: PEN,
    text: `effects asks for approval of refundAsked (call_1_0) in ${session.id}`,
    url: `https://agents.example.com/console/sessions/${session.id}`,
  });
  expect(receiver.of('session.end')[0]?.data).toMatchObject({ session: session.id, reason: 'completed' });
  const state = await world.check(session);
  // Neither the address nor the secret is in the history.
  const { events } = await world.client.workflow.getHandle(session.id).fetchHistory();
  const text = JSON.stringify(events?.map((event) => decodeTexts(event)));
  expect(text).not.toContain(SECRET);
  expect(text).not.toContain(receiver.url);
  expect(state.notified).toEqual(['end']);
});

test('a lost call that nobody can check, and a budget that is used up, are told once each', async () => {
  const receiver = await startWebhookReceiver();
  const world = await openWorld([calls('refundBlind'), calls('refund')], { module: MODULE });
  const env = { WEBHOOK_URL: receiver.url };
  const first = await world.startWorkerProcess({ env, breakAt: ['request'] });
  const session = await world.begin();
  await first.reached('request');
  await session.setBudget({ limits: { turns: 1 } });
  await first.crash();
  await world.startWorkerProcess({ env });
  await world.until(session, 'unknown_effect');
  await expect.poll(() => receiver.of('session.unknown').length, LONG).toBe(1);
  const { pending } = await session.state();
  const [call] = pending;
  if (call === undefined) throw new Error('no pending call');
  await session.resolve(call, { outcome: 'failed' });
  await world.until(session, 'waiting');
  await expect.poll(() => receiver.of('session.wait').length, LONG).toBe(1);
  expect(receiver.received.map(({ type, data }) => [type, data['callId'] ?? data['reason']])).toEqual([
    ['session.unknown', 'call_1_0'],
    ['session.wait', 'budget'],
  ]);
  await world.check(session);
});

test('Slack gets its own shape, unsigned, and only the events that it is for', async () => {
  const receiver = await startWebhookReceiver();
  const stage = await openStage(() => ({ text: 'Hello.' }));
  const model = stage.provider('scripted');
  const loud = defineAgent({ name: 'loud', model, instructions: 'Greet.' });
  const quiet = defineAgent({ name: 'quiet', model, instructions: 'Greet.' });
  await stage.startWorker([loud, quiet], {
    webhooks: {
      slack: {
        url: receiver.url,
        secret: null,
        events: ['end'],
        agents: ['loud'],
        format: ({ data }) => ({ type: 'slack', data: {}, text: data.text }),
      },
    },
  });
  for (const agent of ['quiet', 'loud']) {
    const id = stage.id(agent);
    const session = await stage.sessions.start(agent, { id, message: 'Hi.', mode: 'task' });
    await session.result();
  }
  await expect.poll(() => receiver.received.length, LONG).toBe(1);
  expect(receiver.received[0]?.body).toContain('"text":"loud has completed loud-');
  expect(receiver.received[0]?.headers).not.toHaveProperty('webhook-signature');
  expect((await untilPhase(await stage.sessions.start('quiet', { message: 'Hi.' }), 'idle')).notices).toEqual(
    [],
  );
});

test.each([
  [{ url: 'ftp://x', secret: null }, /^webhooks\.desk\.url: write an address that begins with https:\/\//],
  [
    { url: 'https://x', secret: 'hunter2' },
    /^webhooks\.desk\.secret: write whsec_ and at least 24 bytes(?!.*hunter2)/,
  ],
  // As when its environment variable is not set.
  [{ url: 'https://x', secret: undefined }, /^webhooks\.desk\.secret: write whsec_ and at least 24 bytes/],
  [{ url: 'https://x', secret: [] }, /^webhooks\.desk\.secret: the list is empty/],
  [
    { url: 'https://x', secret: null, events: ['start'] },
    /^webhooks\.desk\.events: start is none of approval/,
  ],
] as const)('a worker refuses the webhook %j', async (webhook, message) => {
  const stage = await openStage(() => ({ text: 'Hello.' }));
  const greeter = defineAgent({ name: 'greeter', model: stage.provider('scripted'), instructions: 'Greet.' });
  const webhooks = { desk: webhook } as unknown as Record<string, Webhook>;
  const error = await rejection(stage.startWorker([greeter], { webhooks }));
  expect(error).toMatchObject({ code: 'INVALID_DEFINITION', message: expect.stringMatching(message) });
});

function decodeTexts(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  if (Array.isArray(value)) return value.map(decodeTexts);
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? String(value) : value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, decodeTexts(one)]));
}
