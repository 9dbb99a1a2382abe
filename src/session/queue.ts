/** Messages that wait for the end of a turn. They can be changed and withdrawn until the session takes them. */
import { UNNAMED } from '../contract/calls.ts';
import type { EditMessageInput, WithdrawInput } from '../contract/inputs.ts';
import { defined } from '../contract/json.ts';
import type { SessionState } from '../contract/state.ts';
import { addAuthor } from './approvers.ts';
import { isBeingAnswered } from './aside.ts';
import type { Moment } from './events.ts';
import { pinProblem } from './pins.ts';
import type { Refusal } from './refusal.ts';
import { hasMessage, iso, note } from './state.ts';
import { mayBeTaken } from './taken-ids.ts';

/** How many withdrawn ids are kept, so that a repeated request does not bring a message back. */
const KEPT = 100;

/** Why a message cannot be withdrawn, or `null`. A message may be withdrawn twice. */
export function withdrawProblem(state: SessionState, { id }: WithdrawInput): Refusal | null {
  return withdrawnOf(state, id) === undefined ? notQueued(state, id) : null;
}

/** Why a message cannot be changed, or `null`. */
export function editMessageProblem(
  state: SessionState,
  { id, by: _by, ...message }: EditMessageInput,
): Refusal | null {
  const problem = withdrawnProblem(state, id) ?? notQueued(state, id);
  if (problem !== null) return problem;
  const { pin } = state.inbox.find((queued) => queued.id === id) ?? {};
  const others = { ...state, inbox: state.inbox.filter((queued) => queued.id !== id) };
  return pinProblem(others, { ...message, ...defined({ pin }) });
}

/** Why a message with this id cannot be sent, or `null`. */
export function withdrawnProblem(state: SessionState, id: string): Refusal | null {
  const withdrawn = withdrawnOf(state, id);
  if (withdrawn === undefined) return null;
  const message = `message ${id} was withdrawn by ${withdrawn.by} at ${withdrawn.at}: send it with a new id`;
  return { code: 'CONFLICT', message, details: { field: 'id', withdrawn } };
}

export function withdraw(state: SessionState, { id, by = UNNAMED }: WithdrawInput, moment: Moment): void {
  if (withdrawnOf(state, id) !== undefined) return;
  // A new array: `hasMessage` caches the ids of an array, and relies on the array only growing.
  state.inbox = state.inbox.filter((queued) => queued.id !== id);
  state.withdrawn = [...(state.withdrawn ?? []), { id, by, at: iso(moment) }].slice(-KEPT);
  note(state, moment, 'message_withdrawn', `${by} withdrew message ${id} before the model saw it`);
}

export function editMessage(
  state: SessionState,
  { id, text, blocks, by = UNNAMED }: EditMessageInput,
  moment: Moment,
): void {
  const at = iso(moment);
  addAuthor(state, by);
  state.inbox = state.inbox.map((queued) => {
    if (queued.id !== id) return queued;
    // The text is no longer only from the person who was verified.
    const { blocks: _blocks, verified: _verified, ...rest } = queued;
    return { ...rest, text, ...defined({ blocks }), edited: { by, at } };
  });
}

function withdrawnOf(
  { withdrawn }: SessionState,
  id: string,
): { id: string; by: string; at: string } | undefined {
  return withdrawn?.find((one) => one.id === id);
}

function notQueued(state: SessionState, id: string): Refusal | null {
  const queued = state.inbox.map((message) => message.id);
  if (isBeingAnswered(state, id)) {
    const message = `message ${id} is not queued any more: it is getting its side answer now`;
    return {
      code: 'MESSAGE_NOT_QUEUED',
      message,
      details: { field: 'id', id, queued: queued.slice(0, 100) },
    };
  }
  if (queued.includes(id)) return null;
  const isTaken = hasMessage(state, id) || mayBeTaken(state.past?.taken, id);
  const message = isTaken
    ? `message ${id} is not queued any more: the session has taken it. To stop its turn, send another with mode interrupt`
    : `id: session ${state.sessionId} has no message ${id}. Queued: ${queued.slice(0, 20).join(', ') || 'none'}`;
  return { code: 'MESSAGE_NOT_QUEUED', message, details: { field: 'id', id, queued: queued.slice(0, 100) } };
}
