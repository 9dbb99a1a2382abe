/** The judge, on a run as it should be and on what each lie of it is called. */
import { describe, expect, test } from 'vitest';
import { judge } from '../../faults/judge.ts';
import { enlarged, LARGE_REPLY, TOO_LARGE_REPLY } from '../../faults/large.ts';
import type { ModelFlight, Observed, ObservedSession } from '../../faults/observe.ts';
import { callTags, MORE, REPLY_NANO_USD, type Story, type Task, type ToolKind } from '../../faults/story.ts';
import type { JsonObject, JsonValue, ResolutionRecord, SessionState, ToolCall } from '../../src/index.ts';
import { LIMIT } from '../../src/index.ts';

const at = (ms: number): string => new Date(1_700_000_000_000 + ms).toISOString();
const KEY = 'key-1';
const RESERVED = 9_000_000;

const task: Task = { session: 's', kind: 'mutate', tag: 's', turns: 1, mode: 'plain' };
const story: Story = {
  point: 'worker-kill',
  step: 'landed',
  keys: 'ignored',
  kinds: ['mutate'],
  turns: 1,
  strike: 1,
  messages: true,
  stack: 'dev',
  workers: 1,
  seed: 1,
};

const goodCall: ToolCall = {
  id: 'call_1_0',
  turn: 1,
  message: 1,
  name: 'pay',
  args: { tag: 's#1', mode: 'plain' },
  argsDigest: 'd',
  effect: 'mutate',
  scope: 'session',
  idempotencyKey: KEY,
  status: { kind: 'completed' },
  issuedAt: at(100),
  completedAt: at(900),
  dispatches: [{ no: 1, at: at(100), outcome: 'landed' }],
  decision: null,
  resolutions: [],
  result: { content: { id: 're_1' }, isError: false },
  replayOf: null,
};

/** A run that is all right: one lost model request, one refund, one message meanwhile. */
function run(
  changes: {
    call?: Partial<ToolCall>;
    session?: Partial<ObservedSession>;
    observed?: Partial<Observed>;
    spent?: number;
    messages?: string[];
  } = {},
): Observed {
  const { messages = ['first', 'during'], spent = 2 * REPLY_NANO_USD + RESERVED } = changes;
  const state = {
    calls: callTags(changes.session?.task ?? task, 1).map((tag) => ({
      ...goodCall,
      ...changes.call,
      args: { tag, mode: 'plain' },
    })),
    transcript: [
      ...messages.map((id) => ({ id, role: 'user', created_at: at(0), blocks: [] })),
      { id: 'a1', role: 'assistant', created_at: at(90), blocks: [] },
      { id: 'a2', role: 'assistant', created_at: at(1_000), blocks: [] },
    ],
    budget: { spent: { nanoUsd: spent }, reserved: { nanoUsd: 0 } },
  } as unknown as SessionState;
  const session: ObservedSession = {
    task,
    landed: { evidence: 'seen', at: 1 },
    wentOnAt: 2,
    restedAt: 2,
    lastPhase: 'idle',
    state,
    foldDiffers: [],
    flights: [
      { reserved: RESERVED, replied: true, charged: REPLY_NANO_USD, lost: false },
      { reserved: RESERVED, replied: false, charged: RESERVED, lost: true },
      { reserved: RESERVED, replied: true, charged: REPLY_NANO_USD, lost: false },
    ],
    acknowledged: ['first', 'during'],
    people: [],
    ...changes.session,
  };
  const line = (ms: number, position: number): Observed['model'][number] => ({
    session: 's',
    at: at(ms),
    position,
    outcome: 'reply',
  });
  return {
    story,
    sessions: [session],
    effects: {},
    rows: [{ id: 're_1', key: KEY, at: at(500), tag: 's#1' }],
    model: [line(50, 0), line(950, 1), line(960, 1)],
    error: null,
    ...changes.observed,
  };
}

const breaches = (observed: Observed, point: Parameters<typeof judge>[1] = {}): string[] =>
  judge(observed, point).map(({ breach, allowed }) => (allowed === null ? breach : `${breach}, ${allowed}`));

test('a good run has no findings', () => {
  expect(judge(run(), {})).toEqual([]);
});

const blind: Partial<ObservedSession> = { task: { ...task, kind: 'blind' } };

const twoRows: Partial<Observed> = {
  rows: [
    { id: 're_1', key: KEY, at: at(500), tag: 's#1' },
    { id: 're_2', key: KEY, at: at(600), tag: 's#1' },
  ],
};

test.each<[string, Observed, string[]]>([
  ['the fault did not land', run({ session: { landed: null } }), ['not-landed']],
  ['the telling broke off', run({ observed: { error: 'it fell over' } }), ['error']],
  ['a second effect', run({ observed: twoRows }), ['duplicate', 'not-linearizable']],
  [
    'the effect under another key',
    run({ observed: { rows: [{ id: 're_1', key: 'other', at: at(500), tag: 's#1' }] } }),
    ['duplicate', 'not-linearizable'],
  ],
  ['claimed, and not in the ledger', run({ observed: { rows: [] } }), ['loss', 'not-linearizable']],
  [
    'in the ledger, and claimed as certainly not done',
    run({
      call: {
        status: { kind: 'failed', certain: true },
        result: { content: 'not executed', isError: true },
        dispatches: [{ no: 1, at: at(100), outcome: 'absent' }],
      },
    }),
    ['loss', 'not-done', 'not-linearizable'],
  ],
  ['still open at the end', run({ call: { status: { kind: 'running' }, result: null } }), ['stuck']],
  ['never at rest', run({ session: { restedAt: null } }), ['stuck']],
  [
    'another state than its history',
    run({ session: { foldDiffers: ['$.turn: folded 1, live 2'] } }),
    ['fold'],
  ],
  ['a message is missing', run({ messages: ['first'] }), ['message-lost']],
  ['a message is there twice', run({ messages: ['first', 'during', 'during'] }), ['message-twice']],
  ['spent is not the sum', run({ spent: 5 }), ['budget']],
  [
    'a lost request was not charged',
    run({
      spent: 2 * REPLY_NANO_USD,
      session: {
        flights: [
          { reserved: RESERVED, replied: true, charged: REPLY_NANO_USD, lost: false },
          { reserved: RESERVED, replied: true, charged: REPLY_NANO_USD, lost: false },
        ],
      },
    }),
    ['budget'],
  ],
  [
    'a recorded reply was paid for again',
    run({
      observed: {
        model: [
          { session: 's', at: at(50), position: 0, outcome: 'reply' },
          { session: 's', at: at(400), position: 0, outcome: 'reply' },
          { session: 's', at: at(950), position: 1, outcome: 'reply' },
        ],
      },
    }),
    ['paid-twice'],
  ],
  [
    'a history that cannot be folded',
    run({ session: { state: null, foldDiffers: ['CHECKPOINT_CORRUPTION'] }, observed: { rows: [] } }),
    ['fold'],
  ],
  [
    'decided without a person',
    run({
      session: { task: { ...task, kind: 'blind' } },
      call: { dispatches: [{ no: 1, at: at(100), outcome: 'unknown' }] },
    }),
    ['without-person'],
  ],
])('%s', (_, observed, expected) => {
  expect(breaches(observed)).toEqual(expected);
});

describe('a call that was given up', () => {
  const failed = (kind: ToolKind, call: Partial<ToolCall> = {}): Observed =>
    run({
      call: {
        status: { kind: 'failed', certain: true },
        result: { content: 'not executed', isError: true },
        dispatches: [{ no: 1, at: at(100), outcome: 'absent' }],
        ...call,
      },
      session: { task: { ...task, kind } },
      observed: { rows: [] },
    });

  test.each<ToolKind>(['read', 'idempotent', 'mutate', 'global'])(
    'is not done, though it is said: %s',
    (kind) => {
      const each = callTags({ ...task, kind }, 1).map(() => 'not-done');
      expect(breaches(failed(kind))).toEqual(each);
      expect(breaches(failed(kind, { status: { kind: 'failed', certain: false } }))).toEqual(each);
      expect(breaches(failed(kind), { fails: [kind] })).toEqual([]);
    },
  );

  test('was a person`s to give up, and without a verify nobody else could', () => {
    const resolutions = [
      { dispatchNo: 1, at: at(800), by: 'lab', outcome: 'absent' } satisfies ResolutionRecord,
    ];
    expect(breaches(failed('mutate', { resolutions }))).toEqual([]);
    expect(breaches(failed('blind', { resolutions }))).toEqual([]);
    const twice = [
      { no: 1, at: at(100), outcome: 'absent', reason: 'timed out after 400 ms' },
      { no: 2, at: at(300), outcome: 'returned' },
    ] as const;
    const done = run({ call: { resolutions, dispatches: [...twice] }, session: blind });
    expect(breaches(done)).toEqual([]);
    const effects = { [KEY]: { ...goodCall, resolutions, dispatches: [] } };
    const shared = failed('global', { scope: 'global' });
    expect(breaches({ ...shared, effects })).not.toContain('not-done');
  });

  test('was nobody`s to give up without a verify', () => {
    const uncertain = { kind: 'failed', certain: false } as const;
    const { rows } = run();
    const returned = [{ no: 1, at: at(100), outcome: 'returned' }] as const;
    const lost = failed('blind', { status: uncertain, dispatches: [...returned] });
    expect(breaches({ ...lost, rows })).toEqual(['not-done']);
    expect(breaches(failed('blind', { dispatches: [], status: { kind: 'skipped' } }))).toEqual(['not-done']);
    expect(breaches(failed('blind', { dispatches: [...returned] }))).toEqual(['not-done']);
  });

  test.each<[string | undefined, string[]]>([
    [undefined, ['without-person']],
    ['timed out after 400 ms', ['without-person']],
    ['activity Heartbeat timeout', ['without-person']],
    ['payBlind failed: NotAttemptedError: connect ECONNREFUSED', []],
    ['fence failed: NotAttemptedError: the call was given to another worker', []],
    ['its worker was shut down', []],
  ])('absent for %s, and made again', (reason, expected) => {
    const dispatches: ToolCall['dispatches'] = [
      { no: 1, at: at(100), outcome: 'absent', ...(reason === undefined ? {} : { reason }) },
      { no: 2, at: at(300), outcome: 'returned' },
    ];
    expect(breaches(run({ call: { name: 'payBlind', dispatches }, session: blind }))).toEqual(expected);
  });

  test('may be there, of an idempotent call', () => {
    const { rows } = run();
    const uncertain = failed('idempotent', { status: { kind: 'failed', certain: false } });
    expect(breaches({ ...uncertain, rows })).toEqual([]);
    expect(breaches({ ...failed('mutate', { status: { kind: 'failed', certain: false } }), rows })).toContain(
      'not-done',
    );
  });
});

test('the call that a later message asks for is judged, too', () => {
  const asked = run({ messages: ['first', MORE], session: { acknowledged: ['first', MORE] } });
  expect(breaches(asked)).toEqual(['stuck']);
});

test('a second effect in the gap is allowed only where a worker overtakes and the service ignores keys', () => {
  const gap = run({ observed: { ...twoRows, story: { ...story, step: 'gap' } } });
  expect(breaches(gap, { overtakes: true })).toEqual(['duplicate, gap', 'not-linearizable, gap']);
  expect(breaches(gap)).toEqual(['duplicate', 'not-linearizable']);
  const honoured = run({ observed: { ...twoRows, story: { ...story, step: 'gap', keys: 'honoured' } } });
  expect(breaches(honoured, { overtakes: true })).toEqual(['duplicate', 'not-linearizable']);
  // One request can be in the gap: a third effect has another cause.
  const rows = [...(twoRows.rows ?? []), { id: 're_3', key: KEY, at: at(700), tag: 's#1' }];
  const third = run({ observed: { rows, story: { ...story, step: 'gap' } } });
  expect(breaches(third, { overtakes: true })).toEqual(['duplicate', 'not-linearizable']);
});

test('a recorded reply is paid for again only in the gap of a worker that overtakes', () => {
  const model = [
    { session: 's', at: at(50), position: 0, outcome: 'reply' },
    { session: 's', at: at(400), position: 0, outcome: 'reply' },
    { session: 's', at: at(950), position: 1, outcome: 'reply' },
  ];
  const asking = run({ observed: { model, story: { ...story, step: 'asking' } } });
  expect(breaches(asking, { overtakes: true })).toEqual(['paid-twice, gap']);
  expect(breaches(asking)).toEqual(['paid-twice']);
});

describe('a model call that was charged at its worst case', () => {
  const flight = (charged: Partial<ModelFlight>): ModelFlight => ({
    reserved: RESERVED,
    replied: false,
    charged: RESERVED,
    lost: false,
    ...charged,
  });
  const reply = flight({ replied: true, charged: REPLY_NANO_USD });
  /** Two replies on record and paid for, and a call more. */
  const charged = (lost: boolean, requests = 2): Observed => {
    const observed = run({ session: { flights: [reply, flight({ lost }), reply] } });
    return { ...observed, model: observed.model.slice(0, requests) };
  };

  test('was billed, or lost with its worker', () => {
    expect(breaches(charged(false))).toEqual(['budget']);
    expect(breaches(charged(false, 3))).toEqual([]);
    expect(breaches(charged(true))).toEqual([]);
  });

  test('or its fault keeps requests from the model', () => {
    expect(breaches(charged(false), { unseen: 1 })).toEqual([]);
    const twice = run({
      spent: 2 * REPLY_NANO_USD + 2 * RESERVED,
      session: { flights: [reply, flight({}), flight({}), reply] },
    });
    expect(breaches({ ...twice, model: twice.model.slice(0, 2) }, { unseen: 1 })).toEqual(['budget']);
  });
});

describe('values near and over the limits', () => {
  const shortened = `{"id":"re_1","tail":"xxx [shortened: this result had 5000100 bytes, ${LIMIT.toolResult} are kept]`;
  /** A run in which all of it was said: the reply at the first position, the tool's result, an answer that was refused. */
  function large(given: {
    reply?: string;
    kind?: ToolKind;
    content?: JsonValue;
    answers?: number;
  }): Observed {
    const { reply = LARGE_REPLY, kind = 'mutate', content = shortened, answers = 2 } = given;
    const observed = run({
      call: {
        result: { content, isError: false },
        dispatches: [{ no: 1, at: at(100), outcome: 'returned' }],
      },
      session: { task: { ...task, kind, mode: 'large' } },
    });
    const [first] = observed.sessions[0]?.state?.transcript.filter(({ role }) => role === 'assistant') ?? [];
    first?.blocks.push({ kind: 'text', text: reply });
    const model = observed.model.slice(0, 1 + answers);
    return { ...observed, model };
  }

  test('are whole, shortened with the notice, or refused', () => {
    expect(judge(large({}), {})).toEqual([]);
    const fits = enlarged('blind', 'large', { id: 're_1' }) as JsonObject;
    expect(breaches(large({ kind: 'blind', content: fits }))).toEqual([]);
  });

  test.each<[string, Observed, string[]]>([
    ['the reply is cut', large({ reply: LARGE_REPLY.slice(1) }), ['cut']],
    ['a reply over the limit is on record', large({ reply: TOO_LARGE_REPLY }), ['cut', 'cut']],
    ['no reply was over the limit', large({ answers: 1 }), ['not-landed']],
    ['a result is cut without a word', large({ content: { id: 're_1', tail: 'xxx' } }), ['cut']],
    [
      'a result is on record beyond the limit',
      large({ content: enlarged('mutate', 'large', { id: 're_1' }) as JsonObject }),
      ['cut', 'cut'],
    ],
    ['a result that fits is cut', large({ kind: 'blind', content: { id: 're_1', tail: 'xxx' } }), ['cut']],
    ['a result that fits is shortened', large({ kind: 'blind' }), ['cut']],
  ])('%s', (_, observed, expected) => {
    expect(breaches(observed)).toEqual(expected);
  });
});

test('an effect of a later equal call is no loss of one that certainly failed before; an earlier one is', () => {
  const failed = { status: { kind: 'failed', certain: true }, result: null, completedAt: at(200) } as const;
  const waits = { ...run({ call: { ...failed, scope: 'global', dispatches: [] } }), effects: {} };
  const laterAt = (issued: number): Observed => {
    const [later] = run({ call: { scope: 'global', dispatches: [], issuedAt: at(issued) } }).sessions;
    return { ...waits, sessions: [...waits.sessions, ...(later === undefined ? [] : [later])] };
  };
  expect(breaches(laterAt(300), { fails: ['mutate'] })).toEqual([]);
  expect(breaches(laterAt(100), { fails: ['mutate'] })).toEqual(['loss']);
});

test('an effect is no loss of a call that is completed with it, when a later equal call is answered with it, too', () => {
  const first = { ...run({ call: { scope: 'global', dispatches: [] } }), effects: {} };
  const asked = { issuedAt: at(950), completedAt: at(990) };
  const [later] = run({ call: { scope: 'global', dispatches: [], ...asked } }).sessions;
  expect(breaches({ ...first, sessions: [...first.sessions, ...(later ? [later] : [])] })).toEqual([]);
});
