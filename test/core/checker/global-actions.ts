/** What a look at a global effect may find, and what may become of the effect, which has a workflow of its own. */

import type { AttachResult } from '../../../src/contract/activities.ts';
import type { InFlight, SessionState, ToolCall } from '../../../src/index.ts';
import type { Outcome } from '../../../src/session/events.ts';
import { type Action, answer, spend, type World } from './world.ts';

const found = (value: AttachResult): Outcome => ({ kind: 'attach', result: { ok: true, value } });
const lost: Outcome = {
  kind: 'attach',
  result: { ok: false, failure: { kind: 'timeout', message: 'lost' } },
};

/** What a look may come to. Whatever it comes to, the effect goes its own way. */
export function attachActions(state: SessionState, world: World, flight: InFlight): Action[] {
  const call = state.calls.find(({ id }) => id === flight.callId);
  if (call === undefined) return [];
  const { id, idempotencyKey: key } = call;
  const effect = world.effects[key];
  if (effect === 'landed')
    return [answer(flight, `${id}'s effect has happened`, found({ kind: 'output', output: 'paid' }))];
  const absent = found({ kind: 'absent', reason: 'not attempted', retryable: false });
  const ends = (now: World): void => {
    now.effects[key] = 'absent';
  };
  const actions = [answer(flight, `${id}'s effect has certainly failed`, absent, ends)];
  if (effect === 'running')
    actions.push(answer(flight, `${id}'s effect has no outcome yet`, found({ kind: 'waiting' })));
  if ((world.left.unavailable ?? 0) > 0) {
    const given = (now: World): void => spend(now, 'unavailable');
    const person = found({
      kind: 'waiting',
      person: {
        kind: 'unknown',
        reason: 'lost',
        call: { callId: 'call_0_0', argsDigest: '', dispatchNo: 1 },
      },
    });
    const error = found({ kind: 'error', message: 'nobody knows what became of its effect' });
    actions.push(
      answer(flight, `${id} hears that its effect waits for a person`, person, given),
      answer(flight, `${id}'s look is lost`, lost, given),
      answer(flight, `${id} hears that nobody knows of its effect`, error, given),
      answer(flight, `${id} finds no effect`, found({ kind: 'gone', reason: 'ended' }), given),
      answer(flight, `${id} finds no tool`, found({ kind: 'unavailable', message: 'no tool' }), given),
    );
  }
  return actions;
}

/** Effects, other than sub-agents, that happen, whether or not anybody waits for them, and tell it; the word may also come too early, or never. */
export function globalEffects(state: SessionState, world: World): Action[] {
  if (state.children !== undefined) return [];
  const happen = Object.entries(world.effects)
    .filter(([, effect]) => effect === 'running')
    .map(
      ([key]): Action => ({
        story: 'a global effect happens in its own workflow',
        by: 'world',
        happens: (now) => {
          now.effects[key] = 'landed';
          now.landed[key] = (now.landed[key] ?? 0) + 1;
        },
        deliveries: [],
      }),
    );
  return [...happen, ...state.calls.filter((call) => hears(state, world, call)).map(word)];
}

function hears(
  { inFlight }: SessionState,
  world: World,
  { id, status, idempotencyKey: key }: ToolCall,
): boolean {
  if (world.effects[key] === 'running' && (world.left.unavailable ?? 0) === 0) return false;
  const flight = inFlight.find(({ kind, callId }) => kind === 'attach' && callId === id);
  return flight === undefined ? status.kind === 'awaiting' && status.due !== true : flight.told !== true;
}

function word({ id }: ToolCall): Action {
  return {
    story: `${id} hears that it may look`,
    by: 'world',
    deliveries: [{ input: { type: 'effect_done', value: { callId: id } }, recorded: () => {} }],
  };
}
