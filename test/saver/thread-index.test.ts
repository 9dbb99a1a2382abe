/** A thread whose index is full: it takes nothing more, says so, and loses nothing. */

import { describe, expect, test } from 'vitest';
import { jsonSize } from '../../src/contract/json.ts';
import { entryMark, THREAD_LIMIT, type ThreadPut } from '../../src/contract/thread.ts';
import { ThreadState } from '../../src/thread/thread-state.ts';
import type { SegmentRef, ThreadInput } from '../../src/workflows/index.ts';
import { thrown } from '../support/thrown.ts';

const NOW = '2024-05-01T00:00:00.000Z';
const PER_SEGMENT = THREAD_LIMIT.sealEntries;
const EMPTY: ThreadInput = {
  threadId: 'long',
  epoch: 0,
  segments: [],
  entries: [],
  garbage: { runs: [], contents: [] },
};

const putOf = (id: string, parent: string | null = null): ThreadPut => ({
  epoch: 0,
  id,
  state: { id },
  parent_id: parent,
  metadata: {},
});
const runOf = (at: number): string => `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`;
const REFUSAL = {
  code: 'TOO_LARGE',
  message: expect.stringMatching(
    /^Thread long is full: its index is \d+ bytes .* Write to another thread/,
  ) as string,
};

/** The most segments whose index is not over the limit. */
function segments(): SegmentRef[] {
  const found: SegmentRef[] = [];
  for (;;) {
    const at = found.length;
    const ids = Array.from({ length: PER_SEGMENT }, (_, n) => `id-${at}-${n}`);
    const marks = ids.map((id) => entryMark('checkpoint', id)).join('');
    const next = { run: runOf(at), marks, checkpoints: PER_SEGMENT, steps: 0 };
    if (jsonSize([...found, next]) > THREAD_LIMIT.index) return found;
    found.push(next);
  }
}

const SEGMENTS = segments();
const LAST_RUN = runOf(SEGMENTS.length);

/** The run that is the last to take anything, and the one after it, whose index is over the limit. */
function full(): ThreadInput {
  const last = new ThreadState(structuredClone({ ...EMPTY, segments: SEGMENTS }));
  for (let n = 0; n < PER_SEGMENT; n++) {
    const put = putOf(`last-${n}`, n === 0 ? 'id-0-0' : null);
    last.validatePut(put);
    expect(last.put(put, NOW)).toEqual({ created_at: NOW });
  }
  expect(last.full).toBe(true);
  last.seal();
  // What comes while the segment is on its way goes to the next run.
  const late = putOf('late');
  last.validatePut(late);
  last.put(late, NOW);
  last.sealed(LAST_RUN);
  return last.carry();
}

describe('a thread whose index is full', () => {
  test('has taken the sixty thousand entries that its limit promises', () => {
    expect(SEGMENTS.length * PER_SEGMENT).toBeGreaterThan(60_000);
    expect(jsonSize(SEGMENTS)).toBeLessThanOrEqual(THREAD_LIMIT.index);
  });

  test('refuses what would make it grow, by itself or together with others, and changes nothing', () => {
    const next = full();
    const size = jsonSize(next.segments);
    expect(size).toBeGreaterThan(THREAD_LIMIT.index);
    const state = new ThreadState(structuredClone(next));
    const details = { field: 'index of the thread', size, limit: THREAD_LIMIT.index };
    expect(thrown(() => state.validatePut(putOf('more')))).toMatchObject({ ...REFUSAL, details });
    expect(thrown(() => state.validateStep({ epoch: 0, key: 'key', value: 1 }))).toMatchObject({
      ...REFUSAL,
      details,
    });
    const writes = [{ put: putOf('more') }, { step: { epoch: 0, key: 'key', value: 1 } }];
    expect(state.writeAll({ writes }, NOW)).toEqual([{ refused: REFUSAL }, { refused: REFUSAL }]);
    expect(state.carry()).toEqual(next);
    expect(state.find({ kind: 'checkpoint', id: 'more' })).toBeNull();
    expect(state.full).toBe(false);
  });

  test('answers a put that it has, by itself or together with others, and refuses other content', () => {
    const next = full();
    const state = new ThreadState(structuredClone(next));
    const places: [ThreadPut, unknown][] = [
      [putOf('late'), { created_at: NOW }],
      [putOf('last-0', 'id-0-0'), { segment: LAST_RUN }],
      [putOf('id-0-0'), { segment: runOf(0) }],
    ];
    for (const [put, answer] of places) {
      state.validatePut(put);
      expect(state.put(put, 'later')).toEqual(answer);
    }
    const writes = [putOf('late'), putOf('more'), putOf('id-3-7')].map((put) => ({ put }));
    expect(state.writeAll({ writes }, 'later')).toEqual([
      { created_at: NOW },
      { refused: REFUSAL },
      { segment: runOf(3) },
    ]);
    const other = { ...putOf('late'), state: { id: 'other' } };
    expect(thrown(() => state.validatePut(other))).toMatchObject({ code: 'CONFLICT' });
    expect(state.carry()).toEqual(next);
  });

  test('still reads all that it has taken, the newest first', () => {
    const next = full();
    const state = new ThreadState(next);
    const late = {
      entry: expect.objectContaining({ kind: 'checkpoint', id: 'late', state: { id: 'late' } }),
    };
    expect(state.find({ kind: 'checkpoint', id: null })).toEqual(late);
    expect(state.find({ kind: 'checkpoint', id: 'late' })).toEqual(late);
    expect(state.find({ kind: 'checkpoint', id: 'last-0' })).toEqual({ segment: LAST_RUN });
    expect(state.find({ kind: 'checkpoint', id: 'id-0-0' })).toEqual({ segment: runOf(0) });
    const every = [LAST_RUN, ...SEGMENTS.map(({ run }) => run).reverse()];
    expect(state.page({ before: null, limit: 1_000_000 })).toEqual({
      entries: [late.entry],
      segments: every,
    });
    expect(state.page({ before: 'id-3-7', limit: 300 })).toEqual({
      entries: [],
      segments: [runOf(3), runOf(2), runOf(1)],
    });
    expect(state.page({ before: 'id-0-0', limit: 300 })).toEqual({ entries: [], segments: [runOf(0)] });
  });

  test('is deleted as a whole, and what comes then is taken', () => {
    const state = new ThreadState(full());
    const present = runOf(SEGMENTS.length + 1);
    expect(state.delete(present)).toEqual({
      epoch: 0,
      contents: [],
      runs: [...SEGMENTS.map(({ run }) => run), LAST_RUN, present],
    });
    const anew = new ThreadState(state.carry());
    const first = { ...putOf('id-0-0'), epoch: 1 };
    anew.validatePut(first);
    expect(anew.put(first, NOW)).toEqual({ created_at: NOW });
    expect(anew.page({ before: null, limit: 10 })).toEqual({
      entries: [expect.objectContaining({ id: 'id-0-0' })],
      segments: [],
    });
  });
});

test('a write that is too large is named by its kind', () => {
  const state = new ThreadState(structuredClone(EMPTY));
  const text = 'x'.repeat(THREAD_LIMIT.write);
  const put = { ...putOf('large'), metadata: { text } };
  const step = { epoch: 0, key: 'large', value: text };
  expect(thrown(() => state.validatePut(put))).toMatchObject({ details: { field: 'checkpoint' } });
  expect(thrown(() => state.validateStep(step))).toMatchObject({ details: { field: 'step' } });
});

test('what comes while a segment is on its way goes to the next run beside the index, and fits there with it', () => {
  const state = new ThreadState(structuredClone({ ...EMPTY, segments: SEGMENTS }));
  for (let n = 0; n < PER_SEGMENT; n++) state.put(putOf(`small-${n}`), NOW);
  // Nothing is to be handed on yet, and the index counts for nothing.
  expect(state.hasRoom(THREAD_LIMIT.held - PER_SEGMENT * 200)).toBe(true);
  state.seal();
  let taken = 0;
  for (; taken < 10; taken++) {
    const large = { ...putOf(`large-${taken}`), metadata: { text: 'x'.repeat(THREAD_LIMIT.write - 500) } };
    state.validatePut(large);
    if (!state.hasRoom(jsonSize(large))) break;
    state.put(large, NOW);
  }
  expect(taken).toBeGreaterThan(0);
  expect(taken).toBeLessThan(10);
  state.sealed(LAST_RUN);
  const next = state.carry();
  expect(next.entries).toHaveLength(taken);
  // Some more for the segment that has come to the index; Temporal takes two megabytes.
  expect(jsonSize(next)).toBeLessThan(THREAD_LIMIT.held + 10_000);
  // The largest entry has room in the end, or it would be sent again for ever.
  expect(new ThreadState(next).hasRoom(THREAD_LIMIT.write)).toBe(true);
});
