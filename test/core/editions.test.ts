/** Decisions that depend on the edition of the manifest: as they are now, and as sessions on record made them. */
import { describe, expect, test } from 'vitest';
import { shortDigest } from '../../src/contract/keys.ts';
import { EDITION } from '../../src/contract/manifest.ts';
import type { PreparedCall } from '../../src/contract/model-call.ts';
import type { Notification } from '../../src/contract/notifications.ts';
import type { Manifest, SessionState, ToolManifest } from '../../src/index.ts';
import { advance } from '../../src/session/advance.ts';
import type { Command, Input, Issued, Outcome } from '../../src/session/events.ts';
import { initialState } from '../../src/session/initial.ts';
import { setManifest } from '../../src/session/manifest.ts';
import { undoPlan } from '../../src/session/undo-plan.ts';
import { MOMENT, manifestOf } from './checker/scenario.ts';

const EDITIONS: [string, number][] = [
  ['now', EDITION],
  ['on record', 1],
];

function define(tool: Partial<ToolManifest>, edition: number, more: Partial<Manifest> = {}): Manifest {
  return { ...manifestOf({ name: '', tools: { pay: tool }, replies: [], may: {} }), edition, ...more };
}

const NOTIFIES: Partial<Manifest> = { notify: { events: ['approval', 'unknown', 'wait', 'end'] } };

/** What commands tell people. */
function toldBy(commands: readonly Command[]): Notification[] {
  return commands.flatMap((command) => (command.kind === 'notify' ? command.input.notifications : []));
}

/** A session, and what it does next after something has happened. */
interface Session {
  state: SessionState;
  hear(...inputs: Input[]): Command[];
  /** The outcome of the last command of a kind. */
  ends(kind: Outcome['kind'], result: unknown): Command[];
}

/** A session whose model has asked for a payment. */
function paying(manifest: Manifest, call: Partial<PreparedCall> = {}): Session {
  const identity = { sessionId: 's', runId: 'r', firstRunId: 'r' };
  const state = initialState(identity, { agent: 'clerk', message: { text: 'Pay.', by: 'tom' } }, MOMENT);
  setManifest(state, manifest, MOMENT);
  const issued: Command[] = [];
  const hear = (...inputs: Input[]): Command[] => {
    const { commands } = advance(state, inputs, MOMENT);
    issued.push(...commands);
    return commands;
  };
  const ends = (kind: Outcome['kind'], result: unknown): Command[] => {
    const found = issued.findLast((command): command is Issued => command.kind === kind);
    const { seq } = found ?? expect.fail(`no ${kind} was issued`);
    const outcome = kind === 'timer' ? { kind } : { kind, result };
    return hear({ type: 'outcome', seq, outcome: outcome as Outcome });
  };
  hear();
  const usage = { inputTokens: 1, outputTokens: 1 };
  const calls = [{ name: 'pay', args: { cents: 100 }, ...call }];
  ends('model', { ok: true, value: { kind: 'reply', blocks: [], calls, usage } });
  return { state, hear, ends };
}

test.each([
  ['now', EDITION],
  ['in edition 2', 2],
])(
  "%s: a pause takes the place of a chat's stop, and a stop does not take the place of a pause",
  (_, edition) => {
    const isNow = edition === EDITION;
    const { state, hear } = paying(define({}, edition));
    const stop = { type: 'pause', value: { by: 'tom', reason: 'Stopped in the chat', now: true } } as const;
    hear(stop);
    hear({ type: 'pause', value: { by: 'ada', reason: 'a review' } });
    hear(stop);
    const held = { by: 'ada', reason: 'a review', requestedNow: true };
    expect(state.paused).toMatchObject(isNow ? held : { by: 'tom', requestedNow: true });
    const open = { by: 'ada', resumedAt: null };
    expect(state.pauses).toMatchObject(isNow ? [{ by: 'tom', resumedBy: 'ada' }, open] : [{ by: 'tom' }]);
  },
);

describe.each(EDITIONS)('%s', (_, edition) => {
  const isNow = edition === EDITION;

  test('a deploy lets calls run that nobody has decided in time, and one of them waits for two people', () => {
    const approval = { expiresMs: 1_000, onExpiry: 'reject', people: 2 } as const;
    const { state, ends } = paying(define({ approval }, edition), { needsApproval: true });
    const [call] = state.calls;
    expect(call).toMatchObject({ status: { kind: 'approval' }, approvers: { people: 2 } });
    const next = define({ approval: { expiresMs: 1_000, onExpiry: 'approve' } }, edition);
    setManifest(state, { ...next, digest: 'next' }, MOMENT);
    const commands = ends('timer', null).map(({ kind }) => kind);
    expect(call?.status.kind).toBe(isNow ? 'skipped' : 'running');
    expect(commands).toEqual(isNow ? ['model'] : ['tool']);
  });

  test('an interrupt stops waiting for a global effect, and an undo has to look at it', () => {
    const { state, hear, ends } = paying(define({ scope: 'global' }, edition));
    const person = { kind: 'unknown', reason: 'nobody knows' } as const;
    ends('attach', { ok: true, value: { kind: 'waiting', person } });
    hear({ type: 'send', value: { text: 'Leave it.', mode: 'interrupt' } });
    const [call] = state.calls;
    expect(call?.status.kind).toBe('skipped');
    const reason = `it may have happened since, in effect:${call?.idempotencyKey}`;
    const { steps } = undoPlan(state);
    expect(steps).toMatchObject(isNow ? [{ callId: 'call_1_0', by: 'person', reason }] : []);
    expect(steps).toHaveLength(isNow ? 1 : 0);
  });

  test('others are told of what a person has made of the arguments', () => {
    const approval = { expiresMs: null, onExpiry: 'reject', people: 2, unverified: true } as const;
    const { state, hear, ends } = paying(define({ approval }, edition, NOTIFIES), { needsApproval: true });
    ends('notify', { ok: true, value: undefined });
    const [call] = state.calls;
    const before = call?.argsDigest ?? '';
    const decision = { decision: 'edit', args: { cents: 9_000 } } as const;
    hear({ type: 'decide', value: { callId: 'call_1_0', argsDigest: before, by: 'ann', decision } });
    const prepared = { name: 'pay', args: { cents: 9_000 }, needsApproval: true };
    const told = toldBy(ends('prepare', { ok: true, value: prepared }));
    expect(call).toMatchObject({ status: { kind: 'approval' }, args: { cents: 9_000 } });
    const argsDigest = call?.argsDigest ?? '';
    const key = `approval call_1_0 ${shortDigest(argsDigest)}`;
    expect(told).toMatchObject(isNow ? [{ event: 'approval', key, argsDigest }] : []);
    expect(told).toHaveLength(isNow ? 1 : 0);
    expect(argsDigest).not.toBe(before);
  });

  test.each<[string, Input]>([
    ['interrupted', { type: 'send', value: { text: 'Stop.', mode: 'interrupt' } }],
    ['cancelled', { type: 'cancel', value: { by: 'tom' } }],
  ])('a session that is %s waits for a lost payment, and tells people of it', (_how, stop) => {
    const { state, hear, ends } = paying(define({ verify: false }, edition, NOTIFIES));
    hear(stop);
    ends('tool', { ok: true, value: { kind: 'unknown', reason: 'its worker was lost' } });
    const told = toldBy(ends('timer', null));
    expect(state.calls[0]?.status.kind).toBe('unknown');
    expect(told).toMatchObject(isNow ? [{ event: 'unknown', reason: 'unknown', callId: 'call_1_0' }] : []);
    expect(told).toHaveLength(isNow ? 1 : 0);
  });

  test('a session that is cancelled tells nobody of what it skips', () => {
    const { hear } = paying(define({}, edition, NOTIFIES), { needsApproval: true });
    expect(toldBy(hear({ type: 'cancel', value: { by: 'tom' } }))).toEqual([]);
  });

  test('a session that is cancelled and cannot read the effects of earlier runs tells people that it waits', () => {
    const { state, hear, ends } = paying(define({}, edition, NOTIFIES));
    ends('tool', { ok: true, value: { kind: 'output', output: 'paid' } });
    const usage = { inputTokens: 1, outputTokens: 1 };
    const blocks = [{ kind: 'text', text: 'Paid.' }];
    ends('model', { ok: true, value: { kind: 'reply', blocks, calls: [], usage } });
    // As after a rollover.
    const newest = { key: 'k', digest: 'd', bytes: 1 };
    state.past = { newest, sealed: state.position, messages: 0, calls: 1 } as never;
    hear({ type: 'cancel', value: { by: 'tom', undo: true, whole: true } });
    const told = toldBy(ends('load', { ok: true, value: { kind: 'unavailable', message: 'it is gone' } }));
    expect(state.wait?.reason).toBe('history_unreadable');
    expect(told).toMatchObject(isNow ? [{ event: 'wait', reason: 'history_unreadable' }] : []);
    expect(told).toHaveLength(isNow ? 1 : 0);
  });
});
