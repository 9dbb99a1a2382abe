/** Callers with names, roles and tenants. */
import { expect, onTestFinished, test } from 'vitest';
import { createHttpApi, type HttpApiOptions, type Role } from '../../src/http/index.ts';
import {
  type DefinedAgent,
  defineAgent,
  type SessionSummary,
  type SessionView,
  TemporalSaver,
  type TranscriptPage,
} from '../../src/index.ts';
import { polled } from '../support/polled.ts';
import { openStage, type Stage, untilPhase } from '../support/stage.ts';
import { type Answer, openApi, type Sent, type ServedApi } from './support/api.ts';

const ALL: readonly Role[] = ['read', 'talk', 'decide', 'operate'];
const TOKENS = [
  { token: 'token-of-the-reader', name: 'rita', roles: ['read'] },
  { token: 'token-of-the-talker', name: 'tom', roles: ['read', 'talk'] },
  { token: 'token-of-the-operator', name: 'ada', roles: ALL },
  { token: 'token-of-lamps-only', name: 'lena', roles: ALL, tenant: 'lamps' },
  { token: 'token-of-chairs-only', name: 'carl', roles: ALL, tenant: 'chairs' },
] as const;
type Name = (typeof TOKENS)[number]['name'];

interface AccessStage extends ServedApi {
  stage: Stage;
  as<T = Record<string, unknown>>(name: Name, route: string, json?: unknown): Promise<Answer<T>>;
}

function echo(stage: Stage): DefinedAgent {
  return defineAgent({ name: 'echo', model: stage.provider('scripted'), instructions: 'Echo.', tools: {} });
}

async function open(access: Partial<HttpApiOptions> = {}): Promise<AccessStage> {
  const stage = await openStage(({ lastUserText }) => ({ text: `you said: ${lastUserText}` }));
  const { client, taskQueue } = stage;
  const saver = new TemporalSaver(client, { taskQueue });
  const api = await openApi(saver, { taskQueue, access: { token: undefined, tokens: TOKENS, ...access } });
  onTestFinished(() => api.close());
  const as: AccessStage['as'] = (name, route, json) => {
    const { token = '' } = TOKENS.find((entry) => entry.name === name) ?? {};
    const sent: Sent = {
      headers: { authorization: `Bearer ${token}` },
      ...(json === undefined ? {} : { json }),
    };
    return api.call(route, sent);
  };
  return { ...api, stage, as };
}

test('a token has a name, roles and maybe a tenant, which whoami tells', async () => {
  const { as, call } = await open();
  expect((await as('rita', 'GET /whoami')).body).toEqual({ name: 'rita', roles: ['read'], tenant: null });
  expect((await as('lena', 'GET /whoami')).body).toEqual({ name: 'lena', roles: ALL, tenant: 'lamps' });
  const headers = { authorization: 'Bearer token-of-nobody-at-all' };
  expect(await call('GET /whoami', { headers })).toMatchObject({ status: 401, code: 'UNAUTHORIZED' });
});

test('the shared token has all roles and no name', async () => {
  const { call } = await open({ token: 'the-token-of-the-tests', tokens: [] });
  expect((await call('GET /whoami')).body).toEqual({ name: null, roles: ALL, tenant: null });
});

test('a token without the role is refused, and the error names the role', async () => {
  const { as, api } = await open();
  const documented = api.document['paths'] as Record<
    string,
    Record<string, { security?: { token: Role[] }[] }>
  >;
  let refused = 0;
  for (const [path, methods] of Object.entries(documented)) {
    for (const [method, { security: [needed] = [] }] of Object.entries(methods)) {
      const role = needed?.token[0];
      if (role === undefined || role === 'read') continue;
      const route = `${method.toUpperCase()} ${path.replace(/\{\w+\}/g, 'x')}`;
      const answer = await as('rita', route, method === 'delete' ? undefined : {});
      expect(answer, route).toMatchObject({ status: 403, code: 'FORBIDDEN' });
      expect(answer.message).toMatch(new RegExp(`needs the role ${role}, and rita has only read`));
      expect(answer.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope"');
      refused += 1;
    }
  }
  expect(refused).toBeGreaterThanOrEqual(14);
  expect(await as('tom', 'POST /sessions/x/pause', {})).toMatchObject({ status: 403, code: 'FORBIDDEN' });
});

test('what a caller does is recorded under the name of the token, and no other', async () => {
  const { as, stage } = await open();
  await stage.startWorker([echo(stage)]);
  const id = stage.id();
  const started = await as('tom', 'POST /sessions', { agent: 'echo', id, message: { text: 'hello' } });
  expect(started).toMatchObject({ status: 201, body: { id } });
  const sent = { text: 'more', by: 'ada' };
  const claimed = await as('tom', `POST /sessions/${id}/messages`, sent);
  expect(claimed).toMatchObject({ status: 403, code: 'FORBIDDEN' });
  expect(claimed.message).toBe('by: is "ada", but the token belongs to tom. Leave by out');
  for (const [name, route, json] of [
    ['tom', 'POST /sessions', { agent: 'echo', message: { text: 'hello', by: 'ada' } }],
    ['ada', `POST /sessions/${id}/pause`, { by: 'tom' }],
    ['ada', `PUT /sessions/${id}/budget`, { by: 'tom', finish: true }],
    ['ada', `PUT /threads/${id}/checkpoints`, { state: {}, metadata: { by: 'tom', reason: 'why' } }],
  ] as const) {
    expect(await as(name, route, json), route).toMatchObject({ status: 403, code: 'FORBIDDEN' });
  }
  await untilPhase(stage.sessions.get(id), 'idle');
  await as('ada', `POST /sessions/${id}/pause`, { reason: 'a look' });
  const view = await untilPhase(stage.sessions.get(id), 'paused');
  expect(view.paused).toMatchObject({ by: 'ada' });
  await as('ada', `POST /sessions/${id}/resume`);
  await untilPhase(stage.sessions.get(id), 'idle');
  const { body: before } = await as('ada', `GET /threads/${id}/latest`);
  const edit = { state: { ...(before['state'] as object), plan: [] }, metadata: { reason: 'tidy' } };
  expect(await as('ada', `PUT /threads/${id}/checkpoints`, edit)).toMatchObject({ status: 200 });
  const notices = (await stage.sessions.get(id).snapshot()).notices.map(({ message }) => message);
  expect(notices.at(-1)).toMatch(/^ada edited /);
  const { items } = (await as<TranscriptPage>('rita', `GET /sessions/${id}/transcript`)).body;
  expect(items[0]).toMatchObject({ role: 'user' });
});

test("a caller with a tenant starts, sees and touches only that tenant's sessions", async () => {
  const { as, stage } = await open();
  const [lamps, chairs, none] = [stage.id('lamps'), stage.id('chairs'), stage.id('none')];
  const start = (name: Name, json: object) => as(name, 'POST /sessions', { agent: 'echo', ...json });
  expect(await start('lena', { id: lamps })).toMatchObject({ status: 201 });
  expect(await start('ada', { id: chairs, context: { tenant: 'chairs' } })).toMatchObject({ status: 201 });
  expect(await start('ada', { id: none })).toMatchObject({ status: 201 });
  const claimed = await start('lena', { context: { tenant: 'chairs' } });
  expect(claimed).toMatchObject({ status: 403, code: 'FORBIDDEN' });
  expect(claimed.message).toContain('context.tenant: the token belongs to tenant lamps');
  const hasOwnOnly = async (): Promise<void> => {
    const { body } = await as<SessionView>('lena', `GET /sessions/${lamps}`);
    expect(body.context).toEqual({ tenant: 'lamps' });
    expect(await as('carl', `GET /sessions/${chairs}`)).toMatchObject({ status: 200 });
    for (const id of [chairs, none, 'never-started']) {
      for (const [route, json] of [
        [`GET /sessions/${id}`],
        [`GET /sessions/${id}/stream`],
        [`POST /sessions/${id}/messages`, { text: 'hello' }],
        [`POST /sessions/${id}/cancel`, {}],
        [`GET /threads/${id}/latest`],
        [`DELETE /threads/${id}`],
        [`PUT /threads/${id}/steps/k`, { value: 1 }],
      ] as [string, object?][]) {
        const answer = await as('lena', route, json);
        expect(answer, route).toMatchObject({ status: 404, code: 'SESSION_NOT_FOUND' });
        expect(answer.message).toContain(`no session ${id} of tenant lamps`);
      }
    }
  };
  // No worker has run them, so the tenants are not in the search attributes yet.
  await hasOwnOnly();
  await stage.startWorker([echo(stage)]);
  let listed: SessionSummary[] = [];
  const shown = async (): Promise<boolean> => {
    listed = (await as<{ items: SessionSummary[] }>('ada', 'GET /sessions?agent=echo&limit=1000')).body.items;
    return [lamps, chairs].every((id) => listed.some((item) => item.id === id && item.tenant !== null));
  };
  await polled(shown, () => JSON.stringify(listed));
  await hasOwnOnly();
  const { items } = (await as<{ items: SessionSummary[] }>('lena', 'GET /sessions?limit=1000')).body;
  expect(items.map(({ id }) => id)).toContain(lamps);
  expect(items.every(({ tenant }) => tenant === 'lamps')).toBe(true);
  for (const route of ['GET /sessions?tenant=chairs', 'GET /inbox?tenant=chairs']) {
    expect(await as('lena', route), route).toMatchObject({ status: 403, code: 'FORBIDDEN' });
  }
});

test('the authorize hook is asked after roles, and refuses', async () => {
  const asked: unknown[] = [];
  const { as, stage } = await open({
    authorize: ({ name }, action, session) => {
      asked.push([name, action.operation, action.role, session]);
      return action.operation !== 'cancelSession';
    },
  });
  const id = stage.id();
  await as('ada', 'POST /sessions', { agent: 'echo', id });
  const refused = await as('ada', `POST /sessions/${id}/cancel`, {});
  expect(refused).toMatchObject({ status: 403, code: 'FORBIDDEN' });
  expect(refused.message).toBe(
    `ada may not cancelSession of ${id}: the authorize hook of this server refuses it`,
  );
  await as('rita', `POST /sessions/${id}/cancel`, {});
  expect(asked).toEqual([
    ['ada', 'startSession', 'talk', null],
    ['ada', 'cancelSession', 'operate', id],
  ]);
});

test('tokens that cannot be used are refused at the start, with their field', () => {
  const make = (tokens: unknown) => (): unknown =>
    createHttpApi({ tokens } as Parameters<typeof createHttpApi>[0]);
  const good = { token: 'token-of-the-reader', name: 'rita', roles: ['read'] };
  for (const [tokens, message] of [
    [[], /^token: nobody could call the API/],
    [[{ ...good, token: 'short' }], /^tokens\.0\.token: it has 5 characters/],
    [[{ ...good, roles: ['reed'] }], /^tokens\.0\.roles: "reed" is no role\. Roles: read, talk/],
    [[{ ...good, name: ' ' }], /^tokens\.0\.name: /],
    [[{ ...good, tenant: '' }], /^tokens\.0\.tenant: /],
    [[{ ...good, role: 'read' }], /^tokens\.0\.role: is not known/],
    [[good, { ...good, name: 'ada' }], /^tokens\.1\.token: another entry has the same token/],
  ] as const) {
    expect(make(tokens)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) }),
    );
  }
  expect(make([good])).not.toThrow();
});
