/** Repeats requests while a worker or the server is away. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isPerdureError, type Session, type SessionView } from 'perdure';
import { isUnanswered } from '../src/contract/errors.ts';

/** How long sessions may take to come to rest after a fault before they count as stuck, in milliseconds. */
export const PATIENCE_MS = 90_000;

/** The session's view, or `undefined` if nobody answers. */
export async function look(session: Session): Promise<SessionView | undefined> {
  try {
    return await session.state();
  } catch (error) {
    if (passing(error) || isPerdureError(error, 'SESSION_NOT_FOUND')) return undefined;
    throw error;
  }
}

/** Repeats an action that fails because a worker or the server is away. */
export async function retried<T>(act: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (!passing(error) || Date.now() > deadline) throw error;
      await sleep(100);
    }
  }
}

/** Whether an error goes away when a worker or the server is back. */
export function passing(error: unknown): boolean {
  return isUnanswered(error) || isPerdureError(error, 'SERVER_UNAVAILABLE');
}

/** Waits for a condition that no session reports. */
export async function polled(condition: () => boolean | Promise<boolean>, otherwise: string): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(otherwise);
    await sleep(20);
  }
}
