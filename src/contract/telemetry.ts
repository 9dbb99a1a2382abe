/** What a session reports to its worker for traces and metrics. Times are milliseconds since 1970. */

/** Why a session stood still: a call waited for a person, or the session itself waited. */
export type WaitKind = 'approval' | 'unknown_effect' | 'waiting' | 'paused';

/** The reason of a wait for a rate limit. */
export const RATE_LIMITED = 'rate_limited';

export type SessionEvent =
  /** A turn is complete: the reply was recorded, and its calls have ended. */
  | {
      kind: 'turn';
      turn: number;
      start: number;
      end: number;
      calls: number;
      inputTokens: number;
      outputTokens: number;
      nanoUsd: number;
    }
  /** The session or a call no longer waits. `outcome`: the decision, the resolution, or how the call went on. */
  | {
      kind: 'wait';
      turn: number;
      on: WaitKind;
      start: number;
      end: number;
      outcome: string;
      reason?: string;
      callId?: string;
      tool?: string;
    }
  /** An activity ended without a result, because its worker was lost. */
  | {
      kind: 'lost';
      turn: number;
      activity: string;
      start: number;
      end: number;
      message: string;
      callId?: string;
      tool?: string;
      dispatchNo?: number;
    }
  /** The outcome of a lost dispatch is known now, or a person is asked. */
  | { kind: 'recovered'; turn: number; start: number; end: number }
  /** Money was charged, also for replies that were lost. */
  | { kind: 'spent'; nanoUsd: number }
  | { kind: 'ended'; status: string };

/** The events of one step of a session. */
export interface SessionEvents {
  agent: string;
  events: SessionEvent[];
}
