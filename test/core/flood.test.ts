/** How much a session looks through when thousands of messages come in one workflow task. */
import { expect, test } from 'vitest';
import { advance } from '../../src/session/advance.ts';
import type { Input } from '../../src/session/events.ts';
import { initialState } from '../../src/session/initial.ts';
import { MOMENT } from './checker/scenario.ts';

const MESSAGES = 5_000;

test('a flood of messages: their ids are looked up without reading the messages before them', () => {
  const state = initialState({ sessionId: 's', runId: 'r', firstRunId: 'r' }, { agent: 'listener' }, MOMENT);
  let reads = 0;
  state.inbox = new Proxy(state.inbox, {
    get: (inbox, name, receiver): unknown => {
      if (typeof name === 'string' && /^\d+$/.test(name)) reads += 1;
      return Reflect.get(inbox, name, receiver);
    },
  });
  const once = Array.from({ length: MESSAGES }, (_, i) => ({ id: `m${i}`, text: `${i}` }));
  const inputs = [...once, ...once].map((value): Input => ({ type: 'send', value }));
  advance(state, inputs, MOMENT);
  expect(state.inbox.map(({ id }) => id)).toEqual(once.map(({ id }) => id));
  expect(reads).toBeLessThan(10 * MESSAGES);
});
