/** What may become of a wait for a global effect, and of the effect, which has a session of its own. */
import type { ToolResult } from '../../../src/contract/activities.ts';
import type { ToolCall } from '../../../src/contract/calls.ts';
import type { InFlight } from '../../../src/contract/state.ts';
import type { Outcome } from '../../../src/session/events.ts';
import { type Action, answer, spend, type World } from './world.ts';

const returned = (value: ToolResult): Outcome => ({ kind: 'tool', result: { ok: true, value } });
const failed = (kind: 'timeout' | 'cancelled'): Outcome => ({
  kind: 'tool',
  result: { ok: false, failure: { kind, message: kind } },
});

/** What the wait of a call may come to. Whatever it comes to, the effect goes its own way. */
export function globalActions(world: World, flight: InFlight, call: ToolCall): Action[] {
  const { id, idempotencyKey: key } = call;
  const effect = world.effects[key];
  const actions: Action[] = [];
  if (effect === 'landed')
    actions.push(answer(flight, `${id} returns`, returned({ kind: 'output', output: 'paid' })));
  else {
    const absent = returned({ kind: 'absent', reason: 'not attempted', retryable: false });
    const ends = (now: World): void => {
      now.effects[key] = 'absent';
    };
    actions.push(answer(flight, `${id}'s effect has certainly failed`, absent, ends));
  }
  if ((world.left.unavailable ?? 0) > 0) {
    const unavailable = returned({ kind: 'unavailable', message: 'its effect waits for a person' });
    const given = (now: World): void => spend(now, 'unavailable');
    const error = returned({ kind: 'error', message: 'nobody knows what became of its effect' });
    actions.push(
      answer(flight, `${id} hears that its effect waits for a person`, unavailable, given),
      answer(flight, `${id}'s wait is lost`, failed('timeout'), given),
      answer(flight, `${id} hears that nobody knows of its effect`, error, given),
    );
  }
  if (flight.cancelled === true)
    actions.push(answer(flight, `${id}'s wait was cancelled`, failed('cancelled')));
  return actions;
}

/** Effects that happen, whether or not anybody waits for them. */
export function globalEffects(world: World): Action[] {
  return Object.entries(world.effects)
    .filter(([, effect]) => effect === 'running')
    .map(([key]) => ({
      story: 'a global effect happens in its own session',
      by: 'world',
      happens: (now) => {
        now.effects[key] = 'landed';
        now.landed[key] = (now.landed[key] ?? 0) + 1;
      },
      deliveries: [],
    }));
}
