/** The chunks of an answer whose worker was lost in the middle of it. */
import { expect, test } from 'vitest';
import { AnswerWriter, type Chunk } from '../../src/chat/writer.ts';
import type { LiveDelta } from '../../src/contract/live-text.ts';

const text = (words: string): LiveDelta => ({ type: 'text', text: words });
const input = (words: string): LiveDelta => ({ type: 'tool_input', id: 'x', name: 'pay', text: words });

function written(aiSdk: 6 | 7, write: (writer: AnswerWriter) => void): Chunk[] {
  const writer = new AnswerWriter('s', aiSdk, (digest) => digest);
  write(writer);
  return writer.take();
}

const types = (chunks: readonly Chunk[]): string[] => chunks.map(({ type }) => type);
const said = (chunks: readonly Chunk[]): string =>
  chunks.map((chunk) => (chunk.type === 'text-delta' ? chunk.delta : '')).join('');

test.each([6, 7] as const)(
  'version %i: a second attempt that says the same goes on where the first one ended',
  (aiSdk) => {
    const chunks = written(aiSdk, (writer) => {
      writer.live(text('one two'), 1);
      writer.restart();
      writer.live(text('one '), 1);
      writer.live(text('two three'), 1);
      writer.reply([{ kind: 'text', text: 'one two three' }]);
    });
    expect(types(chunks)).toEqual(['start-step', 'text-start', 'text-delta', 'text-delta', 'text-end']);
    expect(said(chunks)).toBe('one two three');
  },
);

test('a second attempt that says something else takes the place of the first one, or is marked', () => {
  const story = (writer: AnswerWriter): void => {
    writer.live(text('one two'), 1);
    writer.live(input('{"a":'), 1);
    writer.restart();
    writer.live(text('none'), 1);
    writer.reply([{ kind: 'text', text: 'none' }]);
  };
  const seven = written(7, story);
  expect(types(seven)).toEqual([
    'start-step',
    'text-start',
    'text-delta',
    'text-end',
    'tool-input-start',
    'tool-input-delta',
    'reset-step',
    'text-start',
    'text-delta',
    'text-end',
  ]);
  const six = written(6, story);
  expect(types(six)).not.toContain('reset-step');
  expect(six.at(-1)).toMatchObject({ type: 'tool-input-error', toolCallId: 'call_1_0', toolName: 'pay' });
});

test('version 6: reasoning that was not heard live comes after the text, and the text comes once', () => {
  const chunks = written(6, (writer) => {
    writer.live(text('one two'), 1);
    writer.reply([
      { kind: 'reasoning', text: 'Hm.' },
      { kind: 'text', text: 'one two' },
      { kind: 'tool_call', id: 'call_1_0', name: 'pay', args: { a: 1 } },
    ]);
  });
  expect(said(chunks)).toBe('one two');
  expect(types(chunks).slice(-4)).toEqual([
    'reasoning-start',
    'reasoning-delta',
    'reasoning-end',
    'tool-input-available',
  ]);
});
