/** Inputs of a session: likely, late, wrong or made up. */

import fc from 'fast-check';
import type { AttachResult, DescribeResult, ToolResult } from '../../src/contract/activities.ts';
import type { ActivityFailureInfo, ActivityOutcome } from '../../src/contract/failure.ts';
import type { ModelResult, PreparedCall, ReadEnd, ReadsResult } from '../../src/contract/model-call.ts';
import type {
  EffectOutcome,
  InFlight,
  JsonValue,
  Manifest,
  SessionState,
  ToolManifest,
} from '../../src/index.ts';
import type { Input, Outcome } from '../../src/session/events.ts';
import { readInput, readSignal } from '../../src/session/read-input.ts';
import { pendingCalls } from '../../src/session/views.ts';
import { type SessionInput, SIGNAL, UPDATE } from '../../src/workflows/index.ts';

const TOOLS = ['look', 'pay', 'idempotent', 'ask'];
const json = fc.jsonValue({ maxDepth: 2, stringUnit: 'binary' }) as fc.Arbitrary<JsonValue>;
const words = fc.string({ maxLength: 12 });
/** Stands for a call that waits for a person when it is sent. */
const PENDING = 'pending';
const callId: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: fc.constant(PENDING) },
  { weight: 2, arbitrary: fc.tuple(fc.nat(4), fc.nat(3)).map(([turn, n]) => `call_${turn}_${n}`) },
  { weight: 1, arbitrary: words },
);

const toolManifest = (name: string): fc.Arbitrary<ToolManifest> =>
  fc.record({
    name: fc.constant(name),
    description: words,
    inputSchema: fc.constant({}),
    effect: fc.constantFrom('read', 'idempotent', 'mutate'),
    scope: fc.constantFrom('call', 'message', 'session', 'global'),
    ttlMs: fc.nat(100_000),
    verify: fc.boolean(),
    timeoutMs: fc.nat(100_000),
    settleMs: fc.constantFrom(0, 5_000),
    maxAttempts: fc.integer({ min: 1, max: 3 }),
    approval: fc.record({
      expiresMs: fc.option(fc.nat(1_000_000)),
      onExpiry: fc.constantFrom('approve', 'reject'),
    }),
  });

const tight = fc.record(
  {
    turns: fc.nat(6),
    toolCalls: fc.nat(6),
    tokens: fc.nat(60_000),
    usd: fc.double({ min: 0, max: 1, noNaN: true }),
    activeMs: fc.nat(1_000_000),
  },
  { requiredKeys: [] },
);
/** Mostly none, for a session that has used up its budget does little. */
const cap = fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: tight });

const manifest: fc.Arbitrary<Manifest> = fc.record({
  schema: fc.constant(1),
  agent: fc.constant('clerk'),
  digest: fc.constantFrom('one', 'two'),
  instructions: words,
  models: fc.array(
    fc.record({
      id: words,
      maxOutputTokens: fc.integer({ min: 1, max: 4_000 }),
      price: fc.option(
        fc.record({
          inputPerMillion: fc.double({ min: 0, max: 20, noNaN: true }),
          outputPerMillion: fc.double({ min: 0, max: 80, noNaN: true }),
        }),
      ),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  tools: fc
    .subarray(TOOLS, { minLength: 2 })
    .chain((names) => fc.tuple(...names.map(toolManifest)))
    .map((tools) => Object.fromEntries(tools.map((tool) => [tool.name, tool]))),
  budget: cap,
  loopLimit: fc.integer({ min: 1, max: 4 }),
  toolOrder: fc.constantFrom('ordered', 'parallel'),
  plan: fc.boolean(),
  heartbeatMs: fc.nat(10_000),
  modelCallMs: fc.constant(900_000),
});

const callable = fc.record(
  {
    name: fc.constantFrom(...TOOLS, 'look', 'update_plan'),
    args: fc.oneof(fc.constantFrom<JsonValue>({}, { to: 'a' }), json),
    identity: fc.constantFrom('k1', 'k2', 'k3'),
    needsApproval: fc.constant(true as const),
    metadata: fc.constant({ signed: 'so' }),
  },
  { requiredKeys: ['name', 'args', 'identity'] },
);
const prepared: fc.Arbitrary<PreparedCall> = fc.oneof(
  { weight: 8, arbitrary: callable },
  { weight: 1, arbitrary: json.map((args) => ({ name: 'no such tool', args, problem: 'no' })) },
);

const failure: fc.Arbitrary<ActivityFailureInfo> = fc.record({
  kind: fc.constantFrom('timeout', 'cancelled', 'failed', 'lost'),
  message: words,
});
const ending = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<ActivityOutcome<T>> =>
  fc.oneof<fc.MaybeWeightedArbitrary<ActivityOutcome<T>>[]>(
    { weight: 4, arbitrary: value.map((it) => ({ ok: true, value: it })) },
    { weight: 1, arbitrary: failure.map((it) => ({ ok: false, failure: it })) },
  );
const tokens = fc.option(fc.nat(5_000));

const modelResult: fc.Arbitrary<ModelResult> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('reply' as const),
      model: fc.nat(3),
      blocks: fc.array(fc.record({ kind: fc.constant('text' as const), text: words }), { maxLength: 2 }),
      calls: fc.array(prepared, { maxLength: 3 }),
      finishReason: words,
      usage: fc.record({ inputTokens: tokens, outputTokens: tokens }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('manifest' as const), manifest }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('unavailable' as const), message: words }) },
  { weight: 1, arbitrary: words.map((message) => ({ kind: 'limited' as const, key: 'openai', message })) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('results' as const), reason: fc.constant('large' as const) }),
  },
  {
    weight: 2,
    arbitrary: fc.record(
      {
        kind: fc.constant('failed' as const),
        failure: fc.constantFrom(
          'provider_unavailable',
          'provider_rejected',
          'invalid_response',
          'interrupted',
          'worker_lost',
          'history',
        ),
        message: words,
        maybeBilled: fc.nat(1),
        model: fc.nat(3),
      },
      { requiredKeys: ['kind', 'failure', 'message', 'maybeBilled'] },
    ),
  },
);

const toolResult: fc.Arbitrary<ToolResult> = fc.oneof<fc.Arbitrary<ToolResult>[]>(
  json.map((output) => ({ kind: 'output' as const, output })),
  words.map((message) => ({ kind: 'error' as const, message })),
  fc.record({ kind: fc.constant('absent' as const), reason: words, retryable: fc.boolean() }),
  words.map((reason) => ({ kind: 'unknown' as const, reason })),
  words.map((message) => ({ kind: 'unavailable' as const, message })),
  words.map((text) => ({ kind: 'asks' as const, question: { text } })),
);
/** How reads end, in the order in which they were asked for. */
const readEnds: fc.Arbitrary<Omit<ReadEnd, 'callId'>[]> = fc.array(
  fc.record(
    {
      result: fc.oneof<fc.MaybeWeightedArbitrary<ReadEnd['result']>[]>(
        { weight: 8, arbitrary: json.map((output) => ({ kind: 'output', output })) },
        { weight: 1, arbitrary: words.map((message) => ({ kind: 'error', message })) },
        { weight: 1, arbitrary: words.map((message) => ({ kind: 'unavailable', message })) },
        { weight: 1, arbitrary: words.map((text) => ({ kind: 'asks', question: { text } })) },
      ),
      startedAt: fc.integer({ min: 1.6e12, max: 1.8e12 }),
      ms: fc.nat(100_000),
      attempts: fc.integer({ min: 2, max: 5 }),
    },
    { requiredKeys: ['result', 'startedAt', 'ms'] },
  ),
  { maxLength: 4 },
);
const readsResult: fc.Arbitrary<ReadsResult> = fc.oneof<fc.MaybeWeightedArbitrary<ReadsResult>[]>(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('results' as const),
      reason: fc.constantFrom('reads_only', 'large', 'unavailable', 'not_wanted', 'cancelled', 'released'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('manifest' as const), manifest }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('unavailable' as const), message: words }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('unreadable' as const), message: words }) },
);
const verified: fc.Arbitrary<EffectOutcome> = fc.oneof(
  json.map((output) => ({ outcome: 'landed' as const, output })),
  words.map((reason) => ({ outcome: 'absent' as const, reason })),
  words.map((reason) => ({ outcome: 'unknown' as const, reason })),
);

const described: fc.Arbitrary<DescribeResult> = fc.oneof<fc.MaybeWeightedArbitrary<DescribeResult>[]>(
  {
    weight: 9,
    arbitrary: manifest.map((it) => ({ kind: 'manifest', manifest: it, searchAttributes: [] })),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'unavailable', message: 'no', lookAgain: true }) },
);

const attachResult: fc.Arbitrary<AttachResult> = fc.oneof(
  json.map((output) => ({ kind: 'output' as const, output })),
  words.map((reason) => ({ kind: 'absent' as const, reason, retryable: false })),
  fc.constant({ kind: 'waiting' as const }),
  words.map((reason) => ({
    kind: 'waiting' as const,
    person: { kind: 'unknown' as const, reason, call: { callId: 'call_0_0', argsDigest: '', dispatchNo: 1 } },
  })),
  words.map((reason) => ({ kind: 'gone' as const, reason })),
  words.map((message) => ({ kind: 'unavailable' as const, message })),
);

/** An outcome of each kind: which is used depends on what is in flight. */
interface Outcomes {
  describe: ActivityOutcome<DescribeResult>;
  model: ActivityOutcome<ModelResult>;
  reads: ActivityOutcome<ReadsResult>;
  /** For both activities that run reads. */
  ends: Omit<ReadEnd, 'callId'>[];
  tool: ActivityOutcome<ToolResult>;
  attach: ActivityOutcome<AttachResult>;
  verify: ActivityOutcome<EffectOutcome>;
  prepare: ActivityOutcome<PreparedCall>;
}
const outcomes: fc.Arbitrary<Outcomes> = fc.record({
  describe: ending(described),
  model: ending(modelResult),
  reads: ending(readsResult),
  ends: readEnds,
  tool: ending(toolResult),
  attach: ending(attachResult),
  verify: ending(verified),
  prepare: ending(prepared),
});

const messageId = fc.constantFrom('m1', 'm2', 'm3', 'msg_0', 'msg_1', 'msg_3');

/** What a client in any language may send: some of it in shape, some of it not. */
const payload: fc.Arbitrary<[string, unknown]> = fc.oneof(
  fc.tuple(
    fc.constantFrom(SIGNAL.send, UPDATE.send),
    fc.oneof(
      words,
      fc.record(
        {
          text: words,
          id: fc.constantFrom('m1', 'm2', 'm3'),
          mode: fc.constantFrom('queue', 'interrupt', 'aside'),
        },
        { requiredKeys: ['text'] },
      ),
    ),
  ),
  fc.tuple(fc.constant(UPDATE.withdraw), fc.record({ id: messageId })),
  fc.tuple(fc.constant(UPDATE.editMessage), fc.record({ id: messageId, text: words })),
  fc.tuple(fc.constant(SIGNAL.pause), fc.record({ now: fc.boolean(), by: words }, { requiredKeys: [] })),
  fc.tuple(
    fc.constant(UPDATE.decide),
    fc.record({
      callId,
      argsDigest: fc.constant('of others'),
      decision: fc.oneof(
        fc.constant({ decision: 'approve' }),
        json.map((args) => ({ decision: 'edit', args })),
        fc.constant({ decision: 'reject', reason: 'no' }),
        json.map((output) => ({ decision: 'respond', output })),
      ),
    }),
  ),
  fc.tuple(
    fc.constant(UPDATE.resolve),
    fc.record({
      callId,
      argsDigest: fc.constant('of others'),
      dispatchNo: fc.constant(0),
      resolution: fc.oneof(
        json.map((output) => ({ outcome: 'landed', output })),
        fc.constant({ outcome: 'absent' }),
        fc.constant({ outcome: 'failed' }),
      ),
    }),
  ),
  fc.tuple(
    fc.constant(UPDATE.budget),
    fc.record({ limits: cap, finish: fc.boolean() }, { requiredKeys: [] }),
  ),
  fc.tuple(fc.constantFrom(...Object.values(SIGNAL), ...Object.values(UPDATE), 'no such name'), json),
);

/** Often, for without it a session that has stopped stays where it is. */
const resuming: fc.Arbitrary<[string, unknown]> = fc.oneof(
  { weight: 8, arbitrary: fc.constant<[string, unknown]>([SIGNAL.resume, {}]) },
  { weight: 1, arbitrary: fc.constant<[string, unknown]>([SIGNAL.searchAttributes, { known: [] }]) },
  { weight: 1, arbitrary: fc.constant<[string, unknown]>([SIGNAL.rateTurn, { key: 'openai' }]) },
  { weight: 1, arbitrary: fc.constant<[string, unknown]>([UPDATE.seal, {}]) },
);

/** What happens between two activations. */
export interface Happening {
  /** Milliseconds since the last; clocks also go back. */
  later: number;
  /** How many of what is in flight is answered, and which. */
  answers: { which: number; outcomes: Outcomes }[];
  /** An outcome that nobody has asked for. */
  stray: boolean;
  said: { signal: boolean; name: string; payload: unknown }[];
  cancels: boolean;
}

const happening: fc.Arbitrary<Happening> = fc.record({
  later: fc.integer({ min: -1_000, max: 60_000 }),
  answers: fc.array(fc.record({ which: fc.nat(5), outcomes }), { maxLength: 3 }),
  stray: fc.nat(20).map((n) => n === 0),
  said: fc.array(
    fc
      .record({
        signal: fc.boolean(),
        to: fc.oneof({ weight: 2, arbitrary: payload }, { weight: 1, arbitrary: resuming }),
      })
      .map(({ signal, to: [name, it] }) => ({ signal, name, payload: it })),
    { maxLength: 2 },
  ),
  cancels: fc.nat(40).map((n) => n === 0),
});

/** What a session starts with. */
export const start: fc.Arbitrary<Pick<SessionInput, 'mode' | 'budget'>> = fc.record(
  { mode: fc.constantFrom('chat' as const, 'task' as const), budget: cap },
  { requiredKeys: ['mode'] },
);

/** The inputs of one activation, in the order in which workflow and fold put them. */
export function inputsOf(state: SessionState, happened: Happening): Input[] {
  const people = happened.said.flatMap(({ signal, name, payload: sent }): Input[] => {
    const it = aimed(state, sent);
    if (signal) return [readSignal(name, it)];
    const read = readInput(name, it);
    return read.ok ? [read.input] : [];
  });
  if (happened.cancels) people.push({ type: 'cancel', value: {} });
  const answers = new Map<number, Input>();
  for (const { which, outcomes: of } of happened.answers) {
    const flight = state.inFlight[which % Math.max(1, state.inFlight.length)];
    if (flight !== undefined) {
      answers.set(flight.seq, { type: 'outcome', seq: flight.seq, outcome: outcomeOf(flight, of) });
    }
  }
  if (happened.stray) {
    answers.set(9_999, { type: 'outcome', seq: 9_999, outcome: { kind: 'timer' } });
  }
  return [...people, ...[...answers].sort(([a], [b]) => a - b).map(([, input]) => input)];
}

function aimed(state: SessionState, sent: unknown): unknown {
  if (typeof sent !== 'object' || sent === null || !('callId' in sent) || sent.callId !== PENDING)
    return sent;
  const { callId = PENDING, argsDigest, dispatchNo } = pendingCalls(state)[0] ?? {};
  return { ...sent, callId, ...('resolution' in sent ? { argsDigest, dispatchNo } : { argsDigest }) };
}

/** The reads of a flight that have ended: all of them before a reply. */
function endsOf({ reads = [] }: InFlight, { ends }: Outcomes, all: boolean): ReadEnd[] {
  const ended = ends.filter(({ result }) => !all || result.kind !== 'unavailable');
  const output: Omit<ReadEnd, 'callId'> = { result: { kind: 'output', output: 1 }, startedAt: 1.7e12, ms: 3 };
  return reads.flatMap((callId, i) => {
    const end = ended[i] ?? (all ? output : undefined);
    return end === undefined ? [] : [{ ...end, callId }];
  });
}

function withReads<T extends { kind: string; reads?: ReadEnd[] }>(
  outcome: ActivityOutcome<T>,
  flight: InFlight,
  of: Outcomes,
): ActivityOutcome<T> {
  if (!outcome.ok || flight.reads === undefined) return outcome;
  const isReply = outcome.value.kind === 'reply';
  return { ok: true, value: { ...outcome.value, reads: endsOf(flight, of, isReply) } };
}

function outcomeOf(flight: InFlight, of: Outcomes): Outcome {
  const { kind } = flight;
  switch (kind) {
    case 'describe':
      return { kind, result: of.describe };
    case 'model':
      return { kind, result: withReads(of.model, flight, of) };
    case 'aside':
      return { kind, result: of.model };
    case 'reads':
      return { kind, result: withReads(of.reads, flight, of) };
    case 'tool':
      return { kind: 'tool', result: of.tool };
    case 'attach':
      return { kind, result: of.attach };
    case 'verify':
      return { kind, result: of.verify };
    case 'prepare':
      return { kind, result: of.prepare };
    default:
      return { kind: 'timer' };
  }
}

/** What happens to a session. */
export const story: fc.Arbitrary<Happening[]> = fc.array(happening, {
  minLength: 1,
  maxLength: 40,
  size: 'max',
});
