/** The options with which a session starts, and the input that is sent. */

import { randomUUID } from 'node:crypto';
import type { Duration } from '@temporalio/common';
import type { CheckpointSaver } from '../contract/checkpoint.ts';
import type { EditInput } from '../contract/edit.ts';
import { invalid } from '../contract/errors.ts';
import type { SendInput } from '../contract/inputs.ts';
import { defined, toJson } from '../contract/json.ts';
import { assertSize, LIMIT, TASK_TIMEOUT } from '../contract/limits.ts';
import type { BudgetLimits } from '../contract/manifest.ts';
import type { OriginInput } from '../contract/origin.ts';
import { type SessionInput, sessionInputSchema } from '../contract/session-input.ts';
import type { SessionMode } from '../contract/state.ts';
import type { UndoInput } from '../contract/undo.ts';
import { notKnown, parseKnown } from '../contract/unknown-name.ts';
import { parseCheckpointId } from '../temporal/checkpoint-id.ts';
import type { PartsInput } from './message-parts.ts';

/** Options of `Sessions.start`. */
export interface StartOptions<CONTEXT extends object = object> {
  /**
   * Unique in the namespace: up to 200 characters. It must not have double quotes, backslashes or control characters,
   * or an apostrophe at either end, because Temporal's visibility cannot find them. Default: a random id.
   */
  id?: string;
  /** The first message. With `parts` it has files. */
  message?: string | SendInput | PartsInput;
  /** `chat` (default) waits for the next message after an answer; `task` ends with it. */
  mode?: SessionMode;
  /**
   * What the application knows about the session's user. Tools, approvals, checks and instructions get it; the agent's
   * `context` schema checks it. At most 8 KB of JSON. Its `tenant` is a search attribute.
   */
  context?: CONTEXT;
  /** Caps. Each replaces the agent's own. */
  budget?: BudgetLimits;
  /** The pool of money that the session shares with other sessions: see `Sessions.pool`. */
  pool?: string;
  /** Where tools keep files of this session. */
  scratchpadRoot?: string;
  /**
   * When the id exists: `fail` (default), or `use` the running session of the same agent, which takes the message. It
   * keeps its mode, context, caps, pool and folder, and refuses other ones; `taskQueue` and `workflowTaskTimeout` are for
   * a new session only.
   */
  onExisting?: 'fail' | 'use';
  /** The task queue of the session. Default: the client's. */
  taskQueue?: string;
  /** How long a worker has for one workflow task. Low, so that a dead worker is noticed soon. Default: 3.5 seconds. */
  workflowTaskTimeout?: Duration;
}

/** How a session starts from a checkpoint. */
export interface ForkOptions extends Omit<StartOptions, 'onExisting' | 'mode'> {
  /** The name of the session's own agent. Any other name is refused. Default: that agent. */
  agent?: string;
  /** Changes to the transcript or the plan, made before the session continues. */
  edits?: EditInput;
  /** Who does this. It is recorded, and so is `reason`. */
  by: string;
  reason: string;
  /**
   * Only for a rewind: first undoes the effects since the checkpoint, the last one first. `true`: a person approves
   * each undo. A digest of `undoPlanSince` approves the list.
   */
  undo?: Exclude<UndoInput, false>;
  /** Where to read a checkpoint that the server no longer has: an `ArchivedSaver`, for example. */
  saver?: Pick<CheckpointSaver, 'get'>;
}

const SHARED = {
  id: true,
  message: true,
  context: true,
  budget: true,
  pool: true,
  scratchpadRoot: true,
  taskQueue: true,
  workflowTaskTimeout: true,
} as const;
const START: Readonly<Record<keyof StartOptions, true>> = { ...SHARED, mode: true, onExisting: true };
const FORK: Readonly<Record<keyof ForkOptions, true>> = {
  ...SHARED,
  agent: true,
  edits: true,
  by: true,
  reason: true,
  saver: true,
  undo: true,
};

/** Refuses unknown options: the compiler checks them for TypeScript only. */
export function checkOptions(kind: 'start' | 'fork', options: object): void {
  const known = kind === 'start' ? START : FORK;
  for (const [field, value] of Object.entries(options)) {
    if (value !== undefined && !Object.hasOwn(known, field)) {
      throw invalid(field.slice(0, 80), notKnown(Object.keys(known)));
    }
  }
}

/** The origin of a fork or a rewind. */
export function originOf(
  kind: 'fork' | 'rewind',
  from: { sessionId: string; checkpointId: string },
  { by, reason, edits, undo }: ForkOptions,
): OriginInput {
  const checkpoint = parseCheckpointId(from.checkpointId);
  return {
    kind,
    sessionId: from.sessionId,
    ...checkpoint,
    by,
    reason,
    ...defined({ edits }),
    ...(kind === 'rewind' ? defined({ undo }) : {}),
  };
}

/** The input of a session. @throws PerdureError `INVALID_ARGUMENT`, `NOT_JSON`, `TOO_LARGE`, naming the field */
export function sessionInput(
  agent: string,
  options: Omit<StartOptions, 'message'> & { message?: SendInput },
  from?: OriginInput,
): SessionInput {
  const { message, mode, context, budget, pool, scratchpadRoot } = options;
  const raw = {
    agent,
    ...defined({ message, mode, context, budget, pool, scratchpadRoot, origin: from }),
  };
  const json = toJson(raw, 'options');
  if (context !== undefined) assertSize('context', context, LIMIT.context);
  const parsed = parseKnown(sessionInputSchema, json);
  // The caller passed the fields of the origin without the prefix.
  if (!parsed.ok) throw invalid(parsed.field.replace(/^origin\./, ''), parsed.problem);
  assertSize('message', parsed.value, LIMIT.input);
  return parsed.value;
}

/** Gives a message an id, so that it can be sent again safely. */
export function withId(input: SendInput): SendInput {
  return input.id === undefined ? { ...input, id: randomUUID() } : input;
}

/** How a session's workflow is started. */
export function startArguments(
  workflowId: string,
  { agent }: SessionInput,
  {
    taskQueue,
    workflowTaskTimeout = TASK_TIMEOUT,
  }: Pick<StartOptions, 'workflowTaskTimeout'> & { taskQueue: string },
): { workflowId: string; taskQueue: string; workflowTaskTimeout: Duration; staticSummary: string } {
  const staticSummary = `${agent} · ${workflowId}`.slice(0, 200);
  return { workflowId, taskQueue, workflowTaskTimeout, staticSummary };
}
