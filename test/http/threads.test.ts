import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Checkpoint, MemorySaver, type StoredStep } from '../../src/index.ts';
import { openApi, type ServedApi } from './support/api.ts';

interface Items<T> {
  items: T[];
}

let api: ServedApi;
const saver = new MemorySaver();
beforeAll(async () => {
  api = await openApi(saver);
});
afterAll(() => api.close());

let threads = 0;
const newThread = (): string => `thread-${threads++}`;

test('a checkpoint is stored, listed, read by its id and as the latest, and removed', async () => {
  const thread = newThread();
  const path = `/threads/${thread}/checkpoints`;
  const first = await api.call<Checkpoint>(`PUT ${path}`, { json: { state: { turn: 1 } } });
  expect(first).toMatchObject({ status: 200, body: { thread_id: thread, parent_id: null, metadata: {} } });
  const second = await api.call<Checkpoint>(`PUT ${path}`, {
    json: { state: { turn: 2 }, parent_id: first.body.id, metadata: { by: 'ada' } },
  });
  expect(second.body).toMatchObject({
    state: { turn: 2 },
    parent_id: first.body.id,
    metadata: { by: 'ada' },
  });
  expect((await api.call(`GET ${path}`)).body).toEqual({
    items: [second.body, first.body],
    next: null,
  });
  expect((await api.call(`GET ${path}?limit=1`)).body).toEqual({
    items: [second.body],
    next: second.body.id,
  });
  expect((await api.call(`GET ${path}?before=${second.body.id}&limit=5`)).body).toEqual({
    items: [first.body],
    next: null,
  });
  expect((await api.call(`GET ${path}?before=nobody`)).body).toEqual({ items: [], next: null });
  expect((await api.call(`GET ${path}?limit=0`)).body).toEqual({ items: [], next: null });
  expect((await api.call(`GET ${path}/${first.body.id}`)).body).toEqual(first.body);
  expect((await api.call(`GET /threads/${thread}/latest`)).body).toEqual(second.body);
  expect(await saver.get(thread)).toEqual(second.body);

  expect(await api.call(`DELETE /threads/${thread}`)).toMatchObject({ status: 204, body: undefined });
  expect(await api.call(`DELETE /threads/${thread}`)).toMatchObject({ status: 204 });
  expect((await api.call(`GET ${path}`)).body).toEqual({ items: [], next: null });
  expect(await api.call(`GET /threads/${thread}/latest`)).toMatchObject({
    status: 404,
    code: 'CHECKPOINT_NOT_FOUND',
  });
  expect(await api.call(`GET ${path}/${first.body.id}`)).toMatchObject({
    status: 404,
    code: 'CHECKPOINT_NOT_FOUND',
  });
});

test('large checkpoints and steps are answered in parts that join', async () => {
  const thread = newThread();
  for (let i = 0; i < 70; i++) {
    await saver.put(thread, { large: 'x'.repeat(1_000_000) }, { id: `${i}` });
    await saver.putStep(thread, `step ${100 + i}`, 'x'.repeat(1_000_000));
  }
  type Page<T> = { items: T[]; next: string | null };
  const readAll = async <T>(path: string, word: string): Promise<{ items: T[]; sizes: number[] }> => {
    const items: T[] = [];
    const sizes: number[] = [];
    let from: string | null | undefined = '';
    while (typeof from === 'string') {
      const query: string = from === '' ? '' : `&${word}=${encodeURIComponent(from)}`;
      const { body }: { body: Page<T> } = await api.call(`GET /threads/${thread}/${path}${query}`);
      items.push(...body.items);
      sizes.push(body.items.length);
      from = body.next;
    }
    return { items, sizes };
  };

  const checkpoints = await readAll<Checkpoint>('checkpoints?limit=100', 'before');
  expect(checkpoints.items).toEqual(await saver.list(thread, { limit: 100 }));
  expect(checkpoints.sizes).toEqual([31, 31, 8]);
  const steps = await readAll<StoredStep>('steps?', 'after');
  expect(steps.items).toEqual(await saver.listSteps(thread));
  expect(steps.sizes).toEqual([31, 31, 8]);
  await saver.delete(thread);
});

test('a checkpoint that is larger than an answer should be is answered alone', async () => {
  const thread = newThread();
  for (const id of ['a', 'b']) await saver.put(thread, { large: id.repeat(40_000_000) }, { id });
  const { body } = await api.call<{ items: Checkpoint[]; next: string }>(
    `GET /threads/${thread}/checkpoints`,
  );
  expect([...body.items.map(({ id }) => id), body.next]).toEqual(['b', 'b']);
  await saver.delete(thread);
});

test('the same put twice, by header or by id, stores once', async () => {
  const route = `PUT /threads/${newThread()}/checkpoints`;
  const headers = { 'idempotency-key': 'turn-1' };
  const json = { state: { a: 1, b: 2 }, metadata: { m: 1 } };
  const first = await api.call<Checkpoint>(route, { json, headers });
  expect(first.body.id).toBe('turn-1');
  const again = await api.call(route, { json: { metadata: { m: 1 }, state: { b: 2, a: 1 } }, headers });
  const inBody = await api.call(route, { json: { ...json, id: 'turn-1' } });
  const both = await api.call(route, { json: { ...json, id: 'turn-1' }, headers });
  for (const answer of [again, inBody, both]) expect(answer).toMatchObject({ status: 200, body: first.body });
  expect((await api.call<Items<Checkpoint>>(route.replace('PUT', 'GET'))).body.items).toHaveLength(1);

  const other = await api.call(route, { json: { state: { a: 2 } }, headers });
  expect(other).toMatchObject({ status: 409, code: 'CONFLICT' });
  const torn = await api.call(route, { json: { ...json, id: 'turn-2' }, headers });
  expect(torn).toMatchObject({ status: 400, code: 'INVALID_ARGUMENT' });
  expect(torn.message).toContain('Idempotency-Key');
});

test('puts at one time with one key store once', async () => {
  const route = `PUT /threads/${newThread()}/checkpoints`;
  const sent = { json: { state: {} }, headers: { 'idempotency-key': 'once' } };
  const answers = await Promise.all(Array.from({ length: 10 }, () => api.call<Checkpoint>(route, sent)));
  expect(new Set(answers.map(({ body }) => body.created_at)).size).toBe(1);
  expect((await api.call<Items<Checkpoint>>(route.replace('PUT', 'GET'))).body.items).toHaveLength(1);
});

test('steps are stored by key, overwritten, read and listed', async () => {
  const path = `/threads/${newThread()}/steps`;
  const key = encodeURIComponent('a/b 😀');
  await api.call(`PUT ${path}/${key}`, { json: { value: 1 } });
  const second = await api.call<StoredStep>(`PUT ${path}/${key}`, { json: { value: null } });
  expect(second).toMatchObject({ status: 200, body: { key: 'a/b 😀', value: null } });
  expect((await api.call(`GET ${path}/${key}`)).body).toEqual(second.body);
  expect((await api.call(`GET ${path}`)).body).toEqual({
    items: [second.body],
    next: null,
  });
  expect(await api.call(`GET ${path}/other`)).toMatchObject({ status: 404, code: 'STEP_NOT_FOUND' });
  expect(await api.call(`PUT ${path}/${key}`, { json: {} })).toMatchObject({ status: 400 });
});

test.each([
  ['slashes', 'a/b//c/'],
  ['spaces', ' a  b '],
  ['an emoji', 'support 😀'],
  ['a percent sign', '100%/%2F/%zz'],
  ['marks of URLs', 'a?b=c&d#e;f+g:h@i'],
  ['dots', '../..'],
  ['1,000 characters', 'x'.repeat(1_000)],
  ['1,000 emojis', '😀'.repeat(1_000)],
  ['the name of a route', 'checkpoints'],
])('a thread id of %s is itself', async (_name, thread) => {
  const path = `/threads/${encodeURIComponent(thread)}/checkpoints`;
  const put = await api.call<Checkpoint>(`PUT ${path}`, { json: { state: { thread }, id: thread } });
  expect(put).toMatchObject({ status: 200, body: { thread_id: thread, id: thread } });
  expect((await api.call(`GET ${path}/${encodeURIComponent(thread)}`)).body).toEqual(put.body);
  expect((await saver.list(thread)).map(({ thread_id }) => thread_id)).toEqual([thread]);
});

test('a checkpoint may be called latest', async () => {
  const thread = newThread();
  const path = `/threads/${thread}/checkpoints`;
  await api.call(`PUT ${path}`, { json: { state: { n: 1 }, id: 'latest' } });
  await api.call(`PUT ${path}`, { json: { state: { n: 2 } } });
  expect((await api.call<Checkpoint>(`GET ${path}/latest`)).body.state).toEqual({ n: 1 });
  expect((await api.call<Checkpoint>(`GET /threads/${thread}/latest`)).body.state).toEqual({ n: 2 });
});

test('a state comes back as it was sent: keys of any kind, numbers, every character', async () => {
  const path = `/threads/${newThread()}/checkpoints`;
  const text =
    '{"state":{"__proto__":{"a":1},"constructor":1,"":0,"n":1e308,"m":-0.1,"i":9007199254740991,"s":"\\u0000\\u2028😀"},"id":"x"}';
  const { status } = await api.call(`PUT ${path}`, {
    raw: text,
    headers: { 'content-type': 'application/json; charset=utf-8' },
  });
  expect(status).toBe(200);
  const response = await fetch(`${api.url}${path}/x`, { headers: { authorization: `Bearer ${api.token}` } });
  expect(await response.text()).toContain(`"state":{"__proto__":{"a":1},"constructor":1,"":0,"n":1e+308`);
});

test.each([
  ['thread_id', 'PUT /threads/%20/checkpoints', { state: {} }],
  ['thread_id', `PUT /threads/${'x'.repeat(2_001)}/checkpoints`, { state: {} }],
  ['thread_id', 'PUT /threads/%00/checkpoints', { state: {} }],
  ['thread_id', 'PUT /threads/%zz/checkpoints', { state: {} }],
  ['thread_id', 'GET /threads/%FF/latest', undefined],
  ['thread_id', 'DELETE /threads/%09', undefined],
  ['checkpoint_id', 'GET /threads/t/checkpoints/%20', undefined],
  ['key', 'PUT /threads/t/steps/%20', { value: 1 }],
  ['id', 'PUT /threads/t/checkpoints', { state: {}, id: ' ' }],
  ['id', 'PUT /threads/t/checkpoints', { state: {}, id: '.' }],
  ['id', 'PUT /threads/t/checkpoints', { state: {}, id: '..' }],
  ['parent_id', 'PUT /threads/t/checkpoints', { state: {}, parent_id: ' ' }],
  ['parent_id', 'PUT /threads/t/checkpoints', { state: {}, parent_id: 'nobody' }],
  ['parent_id', 'PUT /threads/t/checkpoints', { state: {}, parent_id: 7 }],
  ['state', 'PUT /threads/t/checkpoints', {}],
  ['state', 'PUT /threads/t/checkpoints', { state: [] }],
  ['state', 'PUT /threads/t/checkpoints', { state: null }],
  ['metadata', 'PUT /threads/t/checkpoints', { state: {}, metadata: 'm' }],
  ['parentId', 'PUT /threads/t/checkpoints', { state: {}, parentId: 'p' }],
  ['body', 'PUT /threads/t/checkpoints', []],
  ['body', 'PUT /threads/t/checkpoints', 'text'],
  ['value', 'PUT /threads/t/steps/k', {}],
  ['before', 'GET /threads/t/checkpoints?before=%20', undefined],
  ['limit', 'GET /threads/t/checkpoints?limit=2.5', undefined],
  ['limit', 'GET /threads/t/checkpoints?limit=', undefined],
  ['limit', 'GET /threads/t/checkpoints?limit=ten', undefined],
  ['limit', 'GET /threads/t/checkpoints?limit=101', undefined],
  ['limit', 'GET /threads/t/checkpoints?limit=1&limit=2', undefined],
  ['befor', 'GET /threads/t/checkpoints?befor=x', undefined],
  ['__proto__', 'GET /threads/t/checkpoints?__proto__=x', undefined],
  ['end', 'DELETE /threads/t?end=yes', undefined],
])('%s is named when it is wrong: %s', async (field, route, json) => {
  const { status, code, message, body } = await api.call(route, json === undefined ? {} : { json });
  expect({ status, code }).toEqual({ status: 400, code: 'INVALID_ARGUMENT' });
  expect(message.length).toBeGreaterThan(field.length);
  expect(body).toMatchObject({ error: { details: { field } } });
  expect(await saver.list('t')).toEqual([]);
});
