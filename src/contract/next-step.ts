/** What a person can do next, as data. The CLI and Temporal's UI show it as commands. */
import type { SeenCall, SeenDispatch } from './calls.ts';
import type { BudgetLimits } from './manifest.ts';
import type { PoolCap } from './pool.ts';

export type NextStep =
  /** Continue. With `call`: or resolve that call. */
  | { action: 'resume'; sessionId: string; call?: SeenDispatch }
  /** End it. */
  | { action: 'cancel'; sessionId: string }
  /** Fork or rewind it, because its run is full. */
  | { action: 'fork'; sessionId: string }
  /** Raise a cap, or let it finish. Below `atLeast`, in the cap's unit, it stops again at once. */
  | { action: 'budget'; sessionId: string; cap: keyof BudgetLimits; atLeast: number }
  /** Raise a cap of the pool that the session shares. Below `atLeast`, in the cap's unit, it stops again at once. */
  | { action: 'pool'; sessionId: string; pool: string; cap?: PoolCap; atLeast?: number }
  /** Approve, edit, reject or respond to a call. `undoes`: it undoes an effect, and cannot be edited. */
  | ({ action: 'decide'; sessionId: string; undoes?: true } & SeenCall)
  /** Resolve a dispatch of a call. */
  | ({ action: 'resolve'; sessionId: string } & SeenDispatch);
