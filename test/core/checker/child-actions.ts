/** What a sub-agent does in a session of its own, and what the session above hears of it. */
import type { InFlight, SessionState, ToolCall } from '../../../src/index.ts';
import type { Outcome } from '../../../src/session/events.ts';
import { childOf } from '../../../src/session/sub-agents.ts';
import { Violation } from './invariants.ts';
import { type Action, answer, spend, type World } from './world.ts';

type Attached = Extract<Outcome, { kind: 'attach' }>['result'];
type End = Extract<Extract<Attached, { ok: true }>['value'], { kind: 'ended' }>['end'];

const ENDS = {
  landed: { status: 'completed', output: 'paid' },
  absent: { status: 'failed', output: 'its session has been deleted' },
} as const satisfies Record<string, End>;

/** What a look at a sub-agent finds: how far it is, nothing because the look is lost, or its start. */
export function lookActions(world: World, flight: InFlight, { id, idempotencyKey }: ToolCall): Action[] {
  const look = (story: string, result: Attached, happens?: (now: World) => void): Action =>
    answer(flight, story, { kind: 'attach', result }, happens);
  const found = world.effects[idempotencyKey];
  const actions =
    found === 'running' || found === undefined
      ? [look(`${id}'s sub-agent works`, { ok: true, value: { kind: 'waiting' } })]
      : [look(`${id}'s sub-agent has ended`, { ok: true, value: { kind: 'ended', end: ENDS[found] } })];
  if ((world.left.unavailable ?? 0) > 0) {
    const failure = { kind: 'timeout', message: 'lost' } as const;
    const lost = `${id}'s look at its sub-agent is lost`;
    actions.push(look(lost, { ok: false, failure }, (now) => spend(now, 'unavailable')));
  }
  return actions;
}

/** Sub-agents are told; whether they act on it is their affair. */
export function steerActions(flight: InFlight): Action[] {
  const result = { ok: true, value: undefined } as const;
  return [answer(flight, 'sub-agents are told', { kind: 'steer', result })];
}

/** Sub-agents end, by themselves or from outside. Their reports come once, twice, or never. */
export function children(state: SessionState, world: World): Action[] {
  const { calls, status } = state;
  const own = calls.filter((call) => call.replayOf === null && childOf(state, call) !== undefined);
  return own.flatMap((call) => {
    const { id, idempotencyKey: key } = call;
    const effect = world.effects[key];
    if (effect === 'running') {
      const ends = (to: 'landed' | 'absent', story: string): Action => ({
        story: `${id}'s sub-agent ${story}`,
        by: 'world',
        happens: (now) => {
          now.effects[key] = to;
          if (to === 'landed') now.landed[key] = (now.landed[key] ?? 0) + 1;
        },
        deliveries: [],
      });
      return [ends('landed', 'answers'), ends('absent', 'is deleted')];
    }
    const child = childOf(state, call);
    if (effect === undefined || child === undefined || status.kind !== 'active') return [];
    const value = { child: child.sessionId, end: ENDS[effect] };
    const again = child.end !== undefined;
    if (again && (world.left.unavailable ?? 0) === 0) return [];
    return [
      {
        story: `${id}'s sub-agent reports${again ? ' again' : ''}`,
        by: again ? 'person' : 'world',
        ...(again ? { happens: (now: World): void => spend(now, 'unavailable') } : {}),
        deliveries: [{ input: { type: 'child_done', value }, recorded: () => {} }],
      },
    ];
  });
}

/**
 * A session waits for its sub-agents before it goes on, and before it ends. Of one in the background, its model is told once.
 */
export function checkChildren(state: SessionState, world: World): void {
  for (const { callId, end, background } of state.children ?? []) {
    const call = state.calls.find(({ id }) => id === callId);
    const effect = call && world.effects[call.idempotencyKey];
    if (end !== undefined && end.status !== ENDS[effect === 'landed' ? 'landed' : 'absent'].status)
      throw new Violation(`the sub-agent of ${callId} is on record as ${end.status}, and is ${effect}`);
    if (end !== undefined && effect === 'running')
      throw new Violation(`the sub-agent of ${callId} has ended on record, and works`);
    const isOver = background === undefined && call?.completedAt !== null;
    if (background !== undefined)
      checkTold(state, callId, call?.background === true ? end?.status : undefined);
    if (end === undefined && (state.status.kind !== 'active' || isOver))
      throw new Violation(`${callId} has ended before its sub-agent`);
  }
}

/** @param status - how the sub-agent has ended after its call; `undefined` when its model must not be told */
function checkTold({ transcript, inbox, cancelling }: SessionState, callId: string, status?: string): void {
  const told = [...transcript, ...inbox].flatMap(({ report }) =>
    report?.call_id === callId ? [report.status] : [],
  );
  const right = status === undefined ? [] : [status];
  const untold = told.length === 0 && cancelling !== null;
  if (!untold && told.join() !== right.join())
    throw new Violation(
      `the sub-agent of ${callId} is ${right.join() || 'at work'}, and the model is told: ${told.join()}`,
    );
}
