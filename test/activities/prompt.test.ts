/** What a provider is sent of a transcript: shapes that each takes, and the same bytes each turn. */
import type { LanguageModelV3Message } from '@ai-sdk/provider';
import { expect, test } from 'vitest';
import { toPrompt } from '../../src/activities/prompt.ts';
import type { Block, JsonValue, Message } from '../../src/index.ts';

function transcript(...messages: [Message['role'], ...Block[]][]): Message[] {
  return messages.map(([role, ...blocks], i) => ({ id: `msg_${i}`, role, created_at: '2026-01-01', blocks }));
}

const text = (words: string): Block => ({ kind: 'text', text: words });

const called = (id: string, args: JsonValue = {}): Block => ({ kind: 'tool_call', id, name: 'look', args });

const result = (id: string): Block => ({
  kind: 'tool_result',
  call_id: id,
  name: 'look',
  content: 'found',
  is_error: false,
});

/** The transcript of a call for each id, all asked for in one message. */
const calling = (ids: readonly string[]): Message[] =>
  transcript(
    ['user', text('go')],
    ['assistant', ...ids.map((id) => called(id))],
    ['tool', ...ids.map(result)],
  );

/** The ids of calls, and those of results, in their order. */
function sentIds(prompt: readonly LanguageModelV3Message[]): { calls: string[]; results: string[] } {
  const calls: string[] = [];
  const results: string[] = [];
  for (const { role, content } of prompt) {
    for (const part of role === 'assistant' || role === 'tool' ? content : []) {
      if (part.type === 'tool-call') calls.push(part.toolCallId);
      if (part.type === 'tool-result') results.push(part.toolCallId);
    }
  }
  return { calls, results };
}

test.each<[string, JsonValue, JsonValue]>([
  ['an object', { id: '1', deep: [1, { a: null }] }, { id: '1', deep: [1, { a: null }] }],
  ['half an object', '{"id":', {}],
  ['a list', [{ id: '1' }], {}],
  ['null', null, {}],
  ['a number', 7, {}],
])('arguments that are %s are sent as an object, for providers refuse anything else', (_, args, input) => {
  const prompt = toPrompt(
    transcript(['user', text('go')], ['assistant', called('call_1_0', args)], ['tool', result('call_1_0')]),
  );
  expect(prompt[1]?.content).toEqual([
    { type: 'tool-call', toolCallId: expect.any(String), toolName: 'look', input },
  ]);
});

test('ids of calls are nine letters and digits, as Mistral asks: one each, and the same in the result', () => {
  const ids = Array.from({ length: 20_000 }, (_, i) => `call_${Math.floor(i / 128)}_${i % 128}`);
  // Another harness, and a person who edits, may give ids of their own.
  ids.push('toolu_01A', 'chatcmpl-tool-é', '', 'abcdefghi');
  const { calls, results } = sentIds(toPrompt(calling(ids)));
  expect(calls.filter((id) => !/^[a-zA-Z0-9]{9}$/.test(id))).toEqual([]);
  expect(new Set(calls).size).toBe(ids.length);
  expect(results).toEqual(calls);
});

test('two ids whose digests begin alike are sent as two, whichever comes first', () => {
  const [a, b] = ['call_216_24', 'call_574_73'];
  const { calls, results } = sentIds(toPrompt(calling([a, b])));
  expect(new Set(calls).size).toBe(2);
  expect(results).toEqual(calls);
  const turned = sentIds(toPrompt(calling([b, a]))).calls;
  expect(new Set(turned).size).toBe(2);
  expect(turned[0]).toBe(calls[0]);
});

test('a transcript that grows is sent with the same start, for providers keep what they have read', () => {
  const ids = ['call_1_0', 'call_216_24', 'call_574_73', 'call_600_0'];
  const messages = ids.flatMap((id) => calling([id]));
  const whole = toPrompt(messages);
  for (let end = 1; end <= messages.length; end++) {
    expect(toPrompt(messages.slice(0, end))).toEqual(whole.slice(0, end));
  }
});

/** A copy that no conversion knows. */
const unknown = (messages: readonly Message[]): Message[] => structuredClone([...messages]);

test('a prompt that continues an earlier one converts only the new messages', () => {
  const converted: string[] = [];
  const watched = (message: Message): Message => ({
    ...message,
    get blocks() {
      converted.push(message.id);
      return message.blocks;
    },
  });
  const turns = Array.from({ length: 50 }, (_, i) => calling([`call_${i}_0`])).flat();
  const messages = turns.map((message, i) => watched({ ...message, id: `m${i}` }));
  toPrompt(messages.slice(0, 148));
  converted.length = 0;
  const prompt = toPrompt(messages);
  expect([...new Set(converted)]).toEqual(['m148', 'm149']);
  expect(prompt).toEqual(toPrompt(unknown(messages)));
});

test('a prompt shows no message that a rewind, an edit or a compaction has replaced', () => {
  const messages = ['call_1_0', 'call_2_0', 'call_3_0'].flatMap((id) => calling([id]));
  const [first, ...rest] = messages as [Message, ...Message[]];
  const other: Message = { ...first, id: 'msg_other', blocks: [text('something else')] };
  const summary: Message = { ...other, id: 'msg_sum', summary: { from: 0, before: 4, bytes: 1 } };
  const views: Record<string, Message[]> = {
    rewound: [...messages.slice(0, 4), other],
    'rewound and gone on': [...messages.slice(0, 4), other, ...calling(['call_2_0'])],
    'edited in the middle': messages.with(2, {
      ...messages[2],
      blocks: [result('call_1_0'), text('no')],
    } as Message),
    'edited at the start': [{ ...first, blocks: [text('not this')] }, ...rest],
    compacted: [summary, ...messages.slice(4)],
    'asked for a summary': [...messages.slice(0, 7), { ...other, id: '' }],
    'new results, not recorded': [...messages.slice(0, 8), { ...(messages[8] as Message), id: '' }],
    'other results, recorded': [
      ...messages.slice(0, 8),
      { ...other, role: 'tool', blocks: [result('call_3_0')] },
    ],
  };
  for (const [how, view] of Object.entries(views)) {
    toPrompt(messages);
    expect(toPrompt(view), how).toEqual(toPrompt(unknown(view)));
    expect(toPrompt(messages), `after ${how}`).toEqual(toPrompt(unknown(messages)));
  }
});

test('a prompt has the files as they are now, and nothing that a model changed in the last one', () => {
  const value = { digest: 'sha256:1', bytes: 3, media_type: 'image/png' };
  const messages = transcript(
    ['user', text('look'), { kind: 'file', media_type: 'image/png', value }],
    ['assistant', text('seen')],
    ['user', text('again')],
  );
  const stored = new Map([[value.digest, Buffer.from('abc')]]);
  const before = toPrompt(messages, stored);
  expect(before[0]?.content[1]).toMatchObject({ type: 'file', data: Buffer.from('abc') });
  const gone = toPrompt(messages, new Map([[value.digest, null]]));
  expect(gone[0]?.content[1]).toMatchObject({ text: expect.stringContaining('no longer stored') });
  // Middleware of the model may do this.
  for (const { content } of before) {
    if (typeof content === 'string') continue;
    for (const part of content) Object.assign(part, { text: 'changed' });
    content.push({ type: 'text', text: 'added' } as never);
  }
  expect(toPrompt(messages, stored)).toEqual(toPrompt(unknown(messages), stored));
});

test('a text of nothing but white space is left out, for Anthropic refuses it in every request from then on', () => {
  const signature = { google: { thoughtSignature: 'dGhv' } };
  const prompt = toPrompt(
    transcript(
      ['user', text('go'), text(' \n')],
      ['assistant', text('\n\n'), called('call_1_0')],
      ['tool', result('call_1_0')],
      ['assistant', text('')],
      ['assistant', { kind: 'text', text: '', metadata: signature }],
    ),
  );
  const toolCallId = sentIds(prompt).calls[0];
  expect(prompt).toEqual([
    { role: 'user', content: [{ type: 'text', text: 'go' }] },
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId, toolName: 'look', input: {} }] },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId, toolName: 'look', output: { type: 'text', value: 'found' } },
      ],
    },
    // Some providers need it back, and say so with what they send beside it.
    { role: 'assistant', content: [{ type: 'text', text: '', providerOptions: signature }] },
  ]);
});

test.each<[string, Block[]]>([
  ['no blocks', []],
  ['white space', [text(' '), text('\t\n')]],
])('a user message of %s stays one, so that the model still answers a user', (_, blocks) => {
  const prompt = toPrompt(
    transcript(['user', text('go')], ['assistant', text('Done.')], ['user', ...blocks]),
  );
  expect(prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
  expect(prompt[2]?.content).toEqual([{ type: 'text', text: '(an empty message)' }]);
});
