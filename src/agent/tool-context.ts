/** What a tool's functions get, and what `verify` returns. */

import type { ToolExecutionOptions } from 'ai';
import type { ToolAnswer } from '../contract/calls.ts';

/** The second argument of a tool's functions. */
export interface ToolContext<CONTEXT = unknown> extends Omit<ToolExecutionOptions, 'abortSignal'> {
  /** The session's id. */
  sessionId: string;
  /** The id of the call, the same in all its attempts. */
  callId: string;
  /**
   * The idempotency key: the same in retries, resumes and `verify`. It is derived from the session, the tool and the
   * arguments that identify the effect. Pass it to services that honour such keys. The model never sees it.
   */
  idempotencyKey: string;
  /** 1, 2, …: the dispatch of a mutation (each further one follows a recorded *absent*), or else the attempt. */
  attempt: number;
  /**
   * Aborts at the tool's time-out, when the call is cancelled, and when the worker shuts down. For a mutation it also
   * aborts when the worker has not reached the server for the agent's `heartbeat`, before the server can give the call
   * to another worker. Pass it to the request that has the effect.
   */
  abortSignal: AbortSignal;
  /**
   * Checks that the call still belongs to this worker: asks Temporal, unless the last answer is at most 100 ms old.
   * Throws `FENCED` when the call was cancelled or has timed out, or another worker may have it. Do not catch that
   * error. Call `fence` just before the request that has the effect.
   */
  fence: () => Promise<void>;
  /** What people have answered to the questions of this call, oldest first: see {@link QuestionError}. */
  answers: readonly ToolAnswer[];
  /** The session's scratchpad directory, if it has one. */
  scratchpadRoot?: string;
  /**
   * The session's context, parsed by the tool's `context` schema, or else by the agent's. It is empty if the session
   * started without one. The tool must not touch data of another tenant than `context.tenant`.
   */
  context: CONTEXT;
}

/** The result of `verify`; see `verify` of a tool. */
export type Verification<OUTPUT> =
  | { outcome: 'landed'; output: OUTPUT }
  | { outcome: 'absent'; reason?: string }
  | { outcome: 'unknown'; reason?: string };
