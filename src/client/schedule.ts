/** Sessions that Temporal's own schedules start. */
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

/** What the server appends to a schedule's id for a session's: `-2026-11-23T09:00:00Z`. */
const TIME_LENGTH = 21;

export interface ScheduleInput<CONTEXT extends object = object>
  extends Omit<StartOptions<CONTEXT>, 'id' | 'message' | 'mode' | 'onExisting'> {
  /** Of the schedule. A session's id is this, a hyphen and its time: `report-2026-11-23T09:00:00Z`. */
  id: string;
  /** The first message of each session. It cannot have files: they would belong to no session. */
  message: string | SendInput;
  /** When: calendars, intervals or cron expressions, with a time zone. */
  spec: ScheduleSpec;
  /** `task` (default) ends a session with its answer; with `chat` it waits for more, until somebody ends it. */
  mode?: SessionMode;
  /** Temporal's own: what happens while the last session still runs (`overlap`, default `SKIP`), or after an outage. */
  policies?: ScheduleOptions['policies'];
  /** Temporal's own: whether it begins paused, how many sessions it starts, and so on. */
  state?: ScheduleOptions['state'];
}

/**
 * Creates a Temporal schedule that starts sessions. There is no scheduler beside Temporal's: its handle pauses, triggers,
 * changes and deletes the schedule. A deleted schedule leaves its sessions as they are.
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
  // A caller in JavaScript may leave it out, and a session without a message would wait for one.
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
    // What Temporal's client and the server find wrong with the times.
    if (error instanceof TypeError) throw invalid('spec', error.message, error);
    throw sessionError(id, error);
  }
}
