/**
 * How much may be sent to a session in all. Temporal ends a workflow whose history has 50 MB or 51,200 events,
 * whoever has filled it. A session stops by itself well before (`LIMIT.historyBytes`), and still takes what people
 * say: up to here, where it refuses by name and keeps what it has.
 *
 * Update validators measure, and so leave no trace; a signal cannot be refused, so our client looks before it
 * sends one.
 */
import { PerdureError } from './errors.ts';
import { SIGNAL, UPDATE } from './names.ts';
import type { NextStep } from './next-step.ts';

/** A history's size. */
export interface HistorySize {
  events: number;
  bytes: number;
  /** Updates that were taken: a Temporal server takes 2,000 of a run, and refuses all others. */
  updates: number;
}

/**
 * From which size on a session refuses what. Its own cancellation is last, so that there is a way to end it in
 * order; what answers an open call may come for longer than what makes new work.
 */
export const ROOM: Readonly<Record<'content' | 'steering' | 'cancel', HistorySize>> = {
  content: { events: 20_000, bytes: 16_000_000, updates: 1_800 },
  steering: { events: 25_000, bytes: 20_000_000, updates: 2_000 },
  // A signal: it counts no updates.
  cancel: { events: 40_000, bytes: 35_000_000, updates: Number.MAX_SAFE_INTEGER },
};

/**
 * Whether there is room for a signal or an update.
 *
 * @param name - the signal's or the update's
 * @param isThere - it says again what is there already, and only wants to be told so
 * @returns `null`, or the refusal: `SESSION_FULL` with the history's size and the limit
 */
export function noRoomFor(
  sessionId: string,
  name: string,
  history: HistorySize,
  isThere = false,
): PerdureError | null {
  const kind = isThere ? 'steering' : kindOf(name);
  const limit = ROOM[kind];
  const { events, bytes, updates } = history;
  if (events < limit.events && bytes < limit.bytes && updates < limit.updates) return null;
  const next: NextStep = { action: 'fork', sessionId };
  const advice =
    kind === 'cancel'
      ? 'Cancel its workflow in Temporal'
      : 'To go on with what was said, fork it, or rewind it to its latest checkpoint';
  return new PerdureError(
    'SESSION_FULL',
    `session ${sessionId} has no room for another ${name}: its history has ${events} events, ${bytes} bytes and ` +
      `${updates} updates, and Temporal ends a run of 51,200 events or 50 MB. It keeps all that it has. ${advice}`,
    { details: { history, limit, ...(kind === 'cancel' ? {} : { next }) } },
  );
}

function kindOf(name: string): keyof typeof ROOM {
  if (name === SIGNAL.cancel) return 'cancel';
  const content: readonly string[] = [SIGNAL.send, UPDATE.send, UPDATE.edit];
  return content.includes(name) ? 'content' : 'steering';
}
