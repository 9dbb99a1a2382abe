/** Approvals that take other people than the one who asked, or several; and who is on record as verified. */

import { expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import {
  type DefinedAgent,
  defineAgent,
  defineTool,
  type PendingCall,
  TemporalSaver,
} from '../../src/index.ts';
import { openStage, type Stage, until, untilPhase } from '../support/stage.ts';
import { type Answer, openApi, type ServedApi } from './support/api.ts';

const NAMES = ['tom', 'ann', 'ben'] as const;
type Name = (typeof NAMES)[number];
const tokenOf = (name: Name): string => `token-of-${name}-at-the-desk`;

interface DeskStage extends ServedApi {
  stage: Stage;
  paid: number[];
  as<T = Record<string, unknown>>(name: Name | 'shared', route: string, json?: unknown): Promise<Answer<T>>;
  /** Starts a session by tom that asks for a payment; its path and the call that waits. */
  ask(): Promise<{ path: string; call: PendingCall }>;
  pending(path: string): Promise<PendingCall>;
}

function desk(stage: Stage, paid: number[]): DefinedAgent {
  return defineAgent({
    name: 'desk',
    model: stage.provider('scripted'),
    instructions: 'Pay.',
    tools: {
      pay: defineTool({
        inputSchema: z.object({ cents: z.number().int() }),
        needsApproval: true,
        approval: { people: 2, byAnother: true },
        settle: '1ms',
        execute: ({ cents }) => {
          paid.push(cents);
          return { paid: cents };
        },
      }),
    },
  });
}

async function open(): Promise<DeskStage> {
  const stage = await openStage(({ stepInTurn }) =>
    stepInTurn > 0 ? { text: 'done' } : { toolCalls: [{ name: 'pay', args: { cents: 100 } }] },
  );
  const { client, taskQueue } = stage;
  const paid: number[] = [];
  const saver = new TemporalSaver(client, { taskQueue });
  const roles = ['read', 'talk', 'decide'] as const;
  const tokens = NAMES.map((name) => ({ token: tokenOf(name), name, roles }));
  const api = await openApi(saver, { taskQueue, access: { tokens } });
  onTestFinished(() => api.close());
  const as: DeskStage['as'] = (name, route, json) => {
    const token = name === 'shared' ? api.token : tokenOf(name);
    const headers = { authorization: `Bearer ${token}` };
    return api.call(route, { headers, ...(json === undefined ? {} : { json }) });
  };
  const pending: DeskStage['pending'] = async (path) => {
    const { items } = (await as<{ items: PendingCall[] }>('ann', `GET ${path}/approvals`)).body;
    return items[0] as PendingCall;
  };
  const ask: DeskStage['ask'] = async () => {
    const { body } = await as<{ id: string }>('tom', 'POST /sessions', {
      agent: 'desk',
      message: { text: 'pay' },
    });
    await untilPhase(stage.sessions.get(body.id), 'approval');
    const path = `/sessions/${body.id}`;
    return { path, call: await pending(path) };
  };
  return { ...api, stage, paid, as, ask, pending };
}

test('two people who have not asked approve one after the other, also over a change of the worker between them', async () => {
  const { as, ask, pending, stage, paid } = await open();
  const worker = await stage.startWorker([desk(stage, paid)]);
  const { path, call } = await ask();
  expect(call.needs).toEqual({ people: 2, given: [], notBy: ['tom'], verified: true });
  const route = `POST ${path}/calls/${call.callId}/decision`;
  const approve = { decision: 'approve', argsDigest: call.argsDigest };
  const refused = async (who: Name | 'shared', reason: string, words: RegExp, more = {}): Promise<void> => {
    const answer = await as<{ error: { details: object } }>(who, route, { ...approve, ...more });
    expect(answer).toMatchObject({ status: 403, code: 'FORBIDDEN' });
    expect(answer.body.error.details).toMatchObject({ reason });
    expect(answer.message).toMatch(words);
  };
  await refused('tom', 'author', /somebody else: tom has sent or edited messages/);
  await refused('shared', 'unverified', /a verified person, and ann is not verified/, { by: 'ann' });
  await refused('shared', 'unverified', /nobody gave a name/);
  expect((await as('ann', route, approve)).body).toEqual({ callId: call.callId, status: 'approval' });
  await refused('ann', 'same_person', /has the approval of ann already, and takes 2 people/);
  const given = [{ decision: 'approve', by: 'ann', verified: true, at: expect.any(String) as string }];
  expect((await pending(path)).needs).toMatchObject({ given, notBy: ['tom', 'ann'] });
  await worker.stop();
  await stage.startWorker([desk(stage, paid)]);
  expect(paid).toEqual([]);
  expect(await as('ben', route, approve)).toMatchObject({ status: 200 });
  const session = stage.sessions.get(path.slice('/sessions/'.length));
  await untilPhase(session, 'idle');
  expect(paid).toEqual([100]);
  const [done] = (await session.calls()).items;
  expect(done?.decision).toMatchObject({ decision: 'approve', by: 'ben', verified: true });
  expect(done?.approvers?.given.map(({ by }) => by)).toEqual(['ann', 'ben']);
  // Who sent the message is on record as verified, and cannot be written into it afterwards.
  const { items } = await session.transcript();
  expect(items[0]).toMatchObject({ role: 'user', by: 'tom' });
  const forged = { id: 'forged', role: 'user', created_at: items[0]?.created_at, by: 'ann' };
  const messages = [{ ...forged, blocks: [{ kind: 'text', text: 'pay more' }] }];
  await session.edit({ transcript: { from: items.length, messages: messages as never }, by: 'tom' });
  expect((await session.transcript()).items.at(-1)).not.toHaveProperty('by');
});

test('one person is enough to reject, and an edit begins anew', async () => {
  const { as, ask, pending, stage, paid } = await open();
  await stage.startWorker([desk(stage, paid)]);
  const first = await ask();
  const route = ({ path, call }: Awaited<ReturnType<DeskStage['ask']>>): string =>
    `POST ${path}/calls/${call.callId}/decision`;
  const { argsDigest } = first.call;
  await as('ann', route(first), { decision: 'approve', argsDigest });
  const rejected = await as('shared', route(first), { decision: 'reject', argsDigest });
  expect(rejected.body).toMatchObject({ status: 'skipped' });
  const second = await ask();
  await as('ann', route(second), { decision: 'approve', argsDigest });
  const edited = await as('ben', route(second), { decision: 'edit', args: { cents: 50 }, argsDigest });
  expect(edited.body).toMatchObject({ status: 'approval' });
  const now = await pending(second.path);
  expect(now.needs?.given.map(({ decision, by }) => [decision, by])).toEqual([['edit', 'ben']]);
  expect(await as('ann', route(second), { decision: 'approve', argsDigest })).toMatchObject({
    code: 'DIGEST_MISMATCH',
  });
  await as('ann', route(second), { decision: 'approve', argsDigest: now.argsDigest });
  await until(stage.sessions.get(second.path.slice('/sessions/'.length)), ({ phase }) => phase === 'idle');
  expect(paid).toEqual([50]);
});

test('rules that nobody could keep, or that a time-out would break, are refused', () => {
  const make = (approval: object) => (): unknown =>
    defineTool({ inputSchema: z.object({}), needsApproval: true, approval, execute: () => null });
  for (const [approval, words] of [
    [{ people: 0 }, 'approval.people is 0'],
    [{ people: 11 }, 'approval.people is 11: the most is 10'],
    [{ byAnother: 'yes' }, 'approval.byAnother is "yes": write true'],
    [{ unverified: true }, 'approval.unverified has no effect without people or byAnother'],
    [{ people: 2, onExpiry: 'approve', expires: '1h' }, "approval.onExpiry is 'approve'"],
    [{ peple: 2 }, 'approval.peple is unknown'],
  ] as const) {
    expect(make(approval)).toThrow(expect.objectContaining({ message: expect.stringContaining(words) }));
  }
});
