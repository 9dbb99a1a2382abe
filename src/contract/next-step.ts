/** What a person can do next, as data: the CLI and Temporal's UI show it as commands. */
import type { SeenCall, SeenDispatch } from './calls.ts';
import type { BudgetLimits } from './manifest.ts';

/** The next step of a session that does not go on by itself. */
export type NextStep =
  /** Let it go on. With `call`: or say what became of that call. */
  | { action: 'resume'; sessionId: string; call?: SeenDispatch }
  /** End it. */
  | { action: 'cancel'; sessionId: string }
  /** Fork or rewind it: its run has no room for more, and one that goes on from a checkpoint has. */
  | { action: 'fork'; sessionId: string }
  /** Raise a cap, or let it finish. Under `atLeast`, in the cap's unit, it stops again at once. */
  | { action: 'budget'; sessionId: string; cap: keyof BudgetLimits; atLeast: number }
  /** Approve, edit, reject or answer a call. */
  | ({ action: 'decide'; sessionId: string } & SeenCall)
  /** Say what became of a dispatch of a call. */
  | ({ action: 'resolve'; sessionId: string } & SeenDispatch);
