/** Starts sessions with Temporal's own schedules. */
import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleHandle,
  type ScheduleOptions,
  type ScheduleSpec,
} from '@temporalio/client';
import { invalid, PerdureError } from '../contract/errors.ts';
import type { SendInput } from '../contract/inputs.ts';
import { defined } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import { DEFAULT_TASK_QUEUE, WORKFLOW } from '../contract/names.ts';
import type { SessionMode } from '../contract/state.ts';
import { sessionError } from '../temporal/errors.ts';
import { checkNewId, checkStart, type StartedAgent } from './checks.ts';
import { checkOptions, type StartOptions, sessionInput, startArguments } from './start-options.ts';

/** Characters that the server appends to a schedule's id to make a session's id: `-2026-11-23T09:00:00Z`. */
const TIME_LENGTH = 21;

/** Options of {@link scheduleSessions}. */
export interface ScheduleInput<CONTEXT extends object = object>
  extends Omit<StartOptions<CONTEXT>, 'id' | 'message' | 'mode' | 'onExisting'> {
  /** The schedule's id. A session's id is this id, a hyphen and its time: `report-2026-11-23T09:00:00Z`. */
  id: string;
  /** The first message of each session. It cannot have files: they would belong to no session. */
  message: string | SendInput;
  /** When: calendars, intervals or cron expressions, with a time zone. */
  spec: ScheduleSpec;
  /** `task` (default): a session ends with its answer. `chat`: it waits for more messages until somebody ends it. */
  mode?: SessionMode;
  /** Temporal's own: what happens while the last session still runs (`overlap`, default `SKIP`), or after an outage. */
  policies?: ScheduleOptions['policies'];
  /** Temporal's own: whether it begins paused, how many sessions it starts, and so on. */
  state?: ScheduleOptions['state'];
}

/**
 * Creates a Temporal schedule that starts sessions. Use its handle to pause, trigger, change or delete the schedule. A
 * deleted schedule leaves its sessions as they are.
 *
 * @throws PerdureError `INVALID_ARGUMENT` naming the field, `CONFLICT` when the schedule exists, `SERVER_UNAVAILABLE`
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { scheduleSessions } from 'perdure/client';
 *
 * const schedule = await scheduleSessions(new Client(), 'report', {
 *   id: 'daily-report',
 *   message: 'Write the report of yesterday.',
 *   spec: { cronExpressions: ['0 9 * * MON-FRI'], timezone: 'Europe/Berlin' },
 * });
 * await schedule.trigger();
 * ```
 */
export async function scheduleSessions<CONTEXT extends object = object>(
  client: Client,
  agent: string | StartedAgent<CONTEXT>,
  options: ScheduleInput<NoInfer<CONTEXT>>,
): Promise<ScheduleHandle> {
  const { id, spec, policies, state, message, mode = 'task', ...start } = options;
  checkNewId(id);
  const longest = LIMIT.sessionId - TIME_LENGTH;
  if (id.length > longest) throw invalid('id', `use up to ${longest} characters: sessions add their time`);
  checkOptions('start', start);
  // A caller in JavaScript may leave the message out, and a session without one would wait for it.
  if (message === undefined) throw invalid('message', 'write the first message of each session');
  const first = typeof message === 'string' ? { text: message } : message;
  const name = typeof agent === 'string' ? agent : agent.name;
  const input = sessionInput(name, { ...start, mode, message: first });
  if (mode === 'chat' && (policies?.overlap ?? 'SKIP') !== 'ALLOW_ALL') {
    throw invalid(
      'mode',
      "a chat does not end by itself, so the schedule's next sessions would not start. Leave the mode out, or set policies.overlap to 'ALLOW_ALL'",
    );
  }
  if (typeof agent !== 'string') await checkStart(agent, input);
  const action = startArguments(id, input, { taskQueue: DEFAULT_TASK_QUEUE, ...defined(start) });
  try {
    return await client.schedule.create({
      scheduleId: id,
      spec,
      ...defined({ policies, state }),
      action: { type: 'startWorkflow', workflowType: WORKFLOW.session, ...action, args: [input] },
    });
  } catch (error) {
    if (error instanceof ScheduleAlreadyRunning) {
      throw new PerdureError('CONFLICT', `id: schedule ${id} exists. Delete it first, or choose another id`, {
        details: { field: 'id' },
        cause: error,
      });
    }
    // Temporal's client throws a TypeError for wrong times.
    if (error instanceof TypeError) throw invalid('spec', error.message, error);
    throw sessionError(id, error);
  }
}
