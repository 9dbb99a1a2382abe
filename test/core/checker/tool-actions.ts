/** What may become of a dispatch, and what `verify` may say: truthful, but not always an answer. */

import type { ToolResult } from '../../../src/contract/activities.ts';
import type { NoReplyReason, ReadEnd } from '../../../src/contract/model-call.ts';
import type { InFlight, SessionState } from '../../../src/index.ts';
import type { Outcome } from '../../../src/session/events.ts';
import { MOMENT } from './scenario.ts';
import {
  type Action,
  type Attempt,
  answer,
  answeredBefore,
  forget,
  land,
  liveAttempt,
  spend,
  type World,
} from './world.ts';

const failed = (kind: 'timeout' | 'cancelled'): Outcome => ({
  kind: 'tool',
  result: { ok: false, failure: { kind, message: kind } },
});
const returned = (value: ToolResult): Outcome => ({ kind: 'tool', result: { ok: true, value } });

/** All reads of an activity, as they return. */
export function readsOf({ reads = [] }: InFlight): { reads?: ReadEnd[] } {
  if (reads.length === 0) return {};
  const result = { kind: 'output', output: 'seen' } as const;
  return { reads: reads.map((callId) => ({ callId, result, startedAt: MOMENT.now, ms: 0 })) };
}

/** What an activity of reads may come to. */
export function readsActions(world: World, flight: InFlight): Action[] {
  const results = (reason: NoReplyReason, reads: ReadEnd[]): Outcome => ({
    kind: 'reads',
    result: { ok: true, value: { kind: 'results', reason, reads } },
  });
  const ids = flight.reads?.join(', ') ?? '';
  const { reads: all = [] } = readsOf(flight);
  const actions = [answer(flight, `${ids} return`, results('reads_only', all))];
  if ((world.left.readFault ?? 0) > 0) {
    const fault = (now: World): void => spend(now, 'readFault');
    const broken = all.map((end) => ({ ...end, result: { kind: 'error', message: 'broken' } as const }));
    const failure = { kind: 'timeout', message: 'timeout' } as const;
    actions.push(
      answer(flight, `${ids} throw`, results('reads_only', broken), fault),
      answer(flight, `${ids} are lost`, { kind: 'reads', result: { ok: false, failure } }, fault),
    );
  }
  if (flight.cancelled === true) {
    const failure = { kind: 'cancelled', message: 'cancelled' } as const;
    actions.push(
      answer(
        flight,
        `the first of ${ids} ended, the others were cancelled`,
        results('cancelled', all.slice(0, 1)),
      ),
      answer(flight, `${ids} were cancelled before they started`, {
        kind: 'reads',
        result: { ok: false, failure },
      }),
    );
  }
  return actions;
}

/** What a call in flight may come to. */
export function toolActions(state: SessionState, world: World, flight: InFlight): Action[] {
  const call = state.calls.find(({ id }) => id === flight.callId);
  if (call === undefined) return [];
  const attempt = liveAttempt(world, flight.seq);
  if (call.effect !== 'mutate') return repeatableActions(world, flight, call.id);
  if (attempt !== undefined) return mutationActions(world, flight, attempt);
  const { id: of = '', status, result } = answeredBefore(world, call.idempotencyKey) ?? {};
  if (status?.kind !== 'completed' && status?.kind !== 'failed') return [];
  const replay = { kind: 'replay', of, status, result: result ?? { content: null, isError: false } } as const;
  return [answer(flight, `${call.id} is answered from an earlier run`, returned(replay))];
}

function repeatableActions(world: World, flight: InFlight, id: string): Action[] {
  const actions = [answer(flight, `${id} returns`, returned({ kind: 'output', output: 'seen' }))];
  if ((world.left.readFault ?? 0) > 0) {
    const fault = (now: World): void => spend(now, 'readFault');
    actions.push(
      answer(flight, `${id} throws`, returned({ kind: 'error', message: 'broken' }), fault),
      answer(flight, `${id} is lost`, failed('timeout'), fault),
    );
  }
  if (flight.cancelled === true) {
    actions.push(answer(flight, `${id} was cancelled`, failed('cancelled')));
  }
  return actions;
}

function mutationActions(world: World, flight: InFlight, attempt: Attempt): Action[] {
  const { callId: id, key, landed } = attempt;
  const record = (told: World['keys'][string]) => (now: World) => {
    now.keys[key] = told;
  };
  const ours = ({ seq, runId }: Attempt): boolean => seq === attempt.seq && runId === attempt.runId;
  const gone = (now: World): void => forget(now, ours);
  const lost = (now: World): void => {
    if (landed) gone(now);
    else for (const candidate of now.attempts) if (ours(candidate)) candidate.lost = true;
  };
  const truth = landed ? 'after its effect' : 'before its effect';
  const actions = [
    answer(flight, `${id}'s worker is lost ${truth}`, failed('timeout'), lost, record('in doubt')),
    answer(
      flight,
      `${id} throws ${truth}`,
      returned({ kind: 'unknown', reason: 'threw' }),
      lost,
      record('in doubt'),
    ),
  ];
  if (landed) {
    const output = returned({ kind: 'output', output: 'paid' });
    return [...actions, answer(flight, `${id} returns`, output, gone, record('done'))];
  }
  for (const retryable of [true, false]) {
    const absent = returned({ kind: 'absent', reason: 'not attempted', retryable });
    const story = `${id} says that it was not attempted${retryable ? '' : ' and never will be'}`;
    actions.push(answer(flight, story, absent, gone, record('free')));
  }
  if ((world.left.asks ?? 0) > 0) {
    const asks = returned({ kind: 'asks', question: { text: 'sure?' } });
    const asked = (now: World): void => {
      spend(now, 'asks');
      gone(now);
    };
    actions.push(answer(flight, `${id} asks a person`, asks, asked, record('free')));
  }
  if ((world.left.unavailable ?? 0) > 0) {
    const unavailable = returned({ kind: 'unavailable', message: 'no such tool' });
    const removed = (now: World): void => {
      spend(now, 'unavailable');
      gone(now);
    };
    actions.push(answer(flight, `${id} finds no tool on the worker`, unavailable, removed, record('free')));
  }
  if ((world.left.released ?? 0) > 0) {
    const release =
      (then: (now: World) => void) =>
      (now: World): void => {
        spend(now, 'released');
        then(now);
      };
    const unknown = returned({ kind: 'unknown', reason: 'shut down', released: true });
    const unbegun = { kind: 'lost', message: 'lost', unbegun: true } as const;
    actions.push(
      answer(
        flight,
        `${id}'s worker is lost before it began`,
        { kind: 'tool', result: { ok: false, failure: unbegun } },
        release(gone),
        record('free'),
      ),
      answer(
        flight,
        `${id} is handed back by a worker that shuts down`,
        returned({ kind: 'released' }),
        release(gone),
        record('free'),
      ),
      answer(
        flight,
        `${id} is cut short by a worker that shuts down`,
        unknown,
        release(lost),
        record('in doubt'),
      ),
    );
  }
  if (flight.cancelled === true) {
    actions.push(
      answer(flight, `${id} was cancelled before it started`, failed('cancelled'), gone, record('in doubt')),
    );
  }
  actions.push({
    story: `${id} has its effect`,
    by: 'world',
    happens: (now) => land(now, attempt),
    deliveries: [],
  });
  return actions;
}

/** What `verify` says; it looks and answers in one moment. */
export function verifyActions(state: SessionState, world: World, flight: InFlight): Action[] {
  const call = state.calls.find(({ id }) => id === flight.callId);
  if (call === undefined) return [];
  const { id, idempotencyKey: key } = call;
  const record = (told: World['keys'][string]) => (now: World) => {
    now.keys[key] = told;
  };
  const unknown: Outcome = {
    kind: 'verify',
    result: { ok: true, value: { outcome: 'unknown', reason: 'cannot tell' } },
  };
  const timeout: Outcome = {
    kind: 'verify',
    result: { ok: false, failure: { kind: 'timeout', message: 'lost' } },
  };
  const value =
    (world.landed[key] ?? 0) > 0
      ? ({ outcome: 'landed', output: 'paid' } as const)
      : ({ outcome: 'absent', reason: 'not there' } as const);
  const told = record(value.outcome === 'landed' ? 'done' : 'free');
  return [
    answer(
      flight,
      `verify of ${id} says ${value.outcome}`,
      { kind: 'verify', result: { ok: true, value } },
      undefined,
      told,
    ),
    answer(flight, `verify of ${id} cannot tell`, unknown, undefined, record('in doubt')),
    answer(flight, `verify of ${id} is lost`, timeout, undefined, record('in doubt')),
  ];
}
