/** Tools for any agent that the session itself answers: they need no worker and no code. */
import type { Duration } from '@temporalio/common';
import * as z from 'zod';
import type { BuiltIn } from '../contract/built-in.ts';
import { PerdureError } from '../contract/errors.ts';
import type { JsonValue } from '../contract/json.ts';
import { msToNumber } from '../temporal/sdk-time.ts';
import { durationProblem } from './checks.ts';
import { type DefinedTool, defineTool } from './define-tool.ts';

const YEAR: Duration = '365 days';

/** Options of {@link sleepUntil} and {@link remindMe}. */
export interface TimedOptions {
  /** When the model should use the tool. */
  description?: string;
  /** How far away the time may be: at most 10 years. Default: 365 days. */
  max?: Duration;
}

const when = {
  until: z.string().optional().describe('ISO 8601 with a zone, such as 2030-01-31T09:00:00Z'),
  seconds: z.number().optional().describe('From now, in place of until'),
};

/** What the model passes to the tool of {@link sleepUntil}. */
export interface SleepInput {
  until?: string | undefined;
  seconds?: number | undefined;
  reason: string;
}

/**
 * A tool with which the model waits until a time. The call stays open until then, without holding a process, over
 * deploys, rollovers and rewinds. A message with mode `interrupt` ends the wait, and so does a person (`perdure wake`).
 *
 * @throws PerdureError `INVALID_DEFINITION` naming the field and what to write
 *
 * @example
 * ```ts
 * import { defineAgent, remindMe, scratchpad, sleepUntil } from 'perdure';
 *
 * export const watcher = defineAgent({
 *   name: 'watcher',
 *   model: 'openai:gpt-5',
 *   instructions: 'Watch the parcel. Look again every morning.',
 *   tools: { sleep_until: sleepUntil({ max: '30 days' }), remind_me: remindMe(), ...scratchpad() },
 * });
 * ```
 */
export function sleepUntil({
  description,
  max = YEAR,
}: TimedOptions = {}): DefinedTool<SleepInput, JsonValue> {
  return builtIn<SleepInput>(
    { kind: 'sleep', maxMs: maxMsOf('sleepUntil: max', max) },
    description ?? 'Wait until a time, and go on then. Say what you wait for.',
    z.object({ ...when, reason: z.string().min(1).max(1_000) }),
  );
}

/** What the model passes to the tool of {@link remindMe}. */
export interface ReminderInput {
  until?: string | undefined;
  seconds?: number | undefined;
  text: string;
}

/**
 * A tool with which the model sends itself a message at a time, and goes on meanwhile. For sessions of mode `chat`.
 *
 * @throws PerdureError `INVALID_DEFINITION` naming the field and what to write
 */
export function remindMe({
  description,
  max = YEAR,
}: TimedOptions = {}): DefinedTool<ReminderInput, JsonValue> {
  return builtIn<ReminderInput>(
    { kind: 'reminder', maxMs: maxMsOf('remindMe: max', max) },
    description ?? 'Get a message of your own at a time. You go on meanwhile.',
    z.object({ ...when, text: z.string().min(1).max(4_000) }),
  );
}

/**
 * Tools with which the model keeps small text files: `scratchpad_read`, `scratchpad_write` and `scratchpad_list`. The
 * files are part of the session's state, so each checkpoint has its version of them.
 */
export function scratchpad(): {
  scratchpad_read: DefinedTool<{ path: string }, JsonValue>;
  scratchpad_write: DefinedTool<ScratchpadWrite, JsonValue>;
  scratchpad_list: DefinedTool<object, JsonValue>;
} {
  const path = z.string().describe('Such as notes/plan.md');
  return {
    scratchpad_read: builtIn<{ path: string }>(
      { kind: 'scratchpad', verb: 'read' },
      'Read a file of your scratchpad.',
      z.object({ path }),
    ),
    scratchpad_write: builtIn<ScratchpadWrite>(
      { kind: 'scratchpad', verb: 'write' },
      'Write a file of your scratchpad, or append to it. Without text, the file is removed.',
      z.object({ path, text: z.string().optional(), append: z.boolean().optional() }),
    ),
    scratchpad_list: builtIn<object>(
      { kind: 'scratchpad', verb: 'list' },
      'List the files of your scratchpad.',
      z.object({}),
    ),
  };
}

/** What the model passes to the tool `scratchpad_write`. */
export interface ScratchpadWrite {
  path: string;
  text?: string | undefined;
  append?: boolean | undefined;
}

/** The tool with which a model stops its background agents. */
export function agentStop(): DefinedTool<{ session: string; reason?: string | undefined }, JsonValue> {
  return builtIn(
    { kind: 'agent_stop' },
    'Stop an agent that works for you in the background. What it has begun settles first, and you get a message when it has ended.',
    z.object({
      session: z.string().describe('As in the result of the call that started it'),
      reason: z.string().max(1_000).optional(),
    }),
  );
}

function maxMsOf(field: string, max: Duration): number {
  const problem = durationProblem(field, max);
  if (problem !== null) throw new PerdureError('INVALID_DEFINITION', problem);
  return msToNumber(max);
}

function builtIn<INPUT>(
  answeredBy: BuiltIn,
  description: string,
  inputSchema: z.ZodType<INPUT>,
): DefinedTool<INPUT, JsonValue> {
  const tool = defineTool<INPUT, JsonValue>({
    description,
    inputSchema,
    effect: 'read',
    execute: () => {
      throw new Error('The session answers this tool itself. Update the workers');
    },
  });
  return { ...tool, builtIn: answeredBy };
}
