/** What a person can do next, as data. The CLI and Temporal's UI show it as commands. */
import type { SeenCall, SeenDispatch } from './calls.ts';
import type { BudgetLimits } from './manifest.ts';
import type { PoolCap } from './pool.ts';

export type NextStep =
  /** Resume the session. With `call`: or resolve that call. */
  | { action: 'resume'; sessionId: string; call?: SeenDispatch }
  /** Cancel the session. */
  | { action: 'cancel'; sessionId: string }
  /** Fork or rewind the session, because its run is full. */
  | { action: 'fork'; sessionId: string }
  /** Raise a cap, or let the session finish. With a cap below `atLeast`, in its unit, it stops again at once. */
  | { action: 'budget'; sessionId: string; cap: keyof BudgetLimits; atLeast: number }
  /** Raise a cap of the session's pool. With a cap below `atLeast`, in its unit, the session stops again at once. */
  | { action: 'pool'; sessionId: string; pool: string; cap?: PoolCap; atLeast?: number }
  /** Approve, edit, reject or respond to a call. `undoes`: the call undoes an effect and cannot be edited. */
  | ({ action: 'decide'; sessionId: string; undoes?: true } & SeenCall)
  /** Resolve a dispatch of a call. */
  | ({ action: 'resolve'; sessionId: string } & SeenDispatch);
