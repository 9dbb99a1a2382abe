/**
 * The headroom of a session's history. Temporal ends a workflow whose history has 50 MB or 51,200 events. A session
 * stops well before that (`LIMIT.historyBytes`), and accepts input from people only up to the limits below. Then it
 * refuses input with `SESSION_FULL` and keeps what it has. Update validators check this and leave no trace. A workflow
 * cannot refuse a signal, so our client checks before it sends one.
 */
import { PerdureError } from '../contract/errors.ts';
import { SIGNAL, UPDATE } from '../contract/names.ts';
import type { NextStep } from '../contract/next-step.ts';

export interface HistorySize {
  events: number;
  bytes: number;
  /** Accepted updates. A Temporal server accepts 2,000 for a run. */
  updates: number;
}

/**
 * The size from which a session refuses each kind of input. Input that makes new work is refused first, input that
 * answers an open call later. Cancellation is refused last, so that a session can always be ended in order.
 */
export const HEADROOM: Readonly<Record<'content' | 'steering' | 'cancel', HistorySize>> = {
  content: { events: 20_000, bytes: 16_000_000, updates: 1_800 },
  steering: { events: 25_000, bytes: 20_000_000, updates: 2_000 },
  // Cancellation is a signal, so the number of updates does not matter.
  cancel: { events: 40_000, bytes: 35_000_000, updates: Number.MAX_SAFE_INTEGER },
};

/**
 * Returns `SESSION_FULL` when the history has no headroom for a signal or an update of this name, otherwise `null`.
 *
 * @param isRepeat - whether it is a message that the session already has, which adds no work.
 */
export function headroomProblem(
  sessionId: string,
  name: string,
  history: HistorySize,
  isRepeat = false,
): PerdureError | null {
  const kind = isRepeat ? 'steering' : kindOf(name);
  const limit = HEADROOM[kind];
  const { events, bytes, updates } = history;
  if (events < limit.events && bytes < limit.bytes && updates < limit.updates) return null;
  const next: NextStep = { action: 'fork', sessionId };
  const advice =
    kind === 'cancel' ? 'Cancel its workflow in Temporal' : 'Rewind it to its latest checkpoint, or fork it';
  return new PerdureError(
    'SESSION_FULL',
    `session ${sessionId} has no room for another ${name}: its history has ${events} events, ${bytes} bytes and ` +
      `${updates} updates, and Temporal ends a run at 51,200 events or 50 MB. Nothing is lost. ${advice}`,
    { details: { history, limit, ...(kind === 'cancel' ? {} : { next }) } },
  );
}

function kindOf(name: string): keyof typeof HEADROOM {
  if (name === SIGNAL.cancel) return 'cancel';
  const content: readonly string[] = [SIGNAL.send, UPDATE.send, UPDATE.edit, UPDATE.editMessage];
  return content.includes(name) ? 'content' : 'steering';
}
