/** When a session starts the delivery of notifications. Only sessions whose manifest asks for them do. */
import { dispatchNoOf, type ToolCall } from '../contract/calls.ts';
import { tenantOf } from '../contract/context.ts';
import { defined, jsonSize } from '../contract/json.ts';
import type { Notification, NotifyInput } from '../contract/notifications.ts';
import type { SessionState } from '../contract/state.ts';
import type { Moment, Step } from './events.ts';
import { seenDigest } from './question.ts';
import { batchCalls, iso } from './state.ts';
import { isUndoing } from './undo.ts';

/** Notifications of one activity. The others follow. */
const AT_ONCE = 20;
/** Larger arguments stay out. */
const ARGS_BYTES = 4_000;
/** Looks for an agent that no worker has, before a person is told. The first ones take some seconds, as a deploy does. */
const QUIET_CHECKS = 3;

/** Starts the delivery of what is new; otherwise `null`. */
export function notifyStep(state: SessionState, moment: Moment): Step | null {
  if (state.manifest?.notify === undefined || state.interrupted) return null;
  if (state.cancelling !== null && !isUndoing(state)) return null;
  return notify(state, newsOf(state, moment));
}

/** What happens at the end: the session tells of it first. `null` while it does. */
export function endNotice(
  state: SessionState,
  end: Extract<Step, { type: 'close' }>,
  moment: Moment,
): Step | null {
  if (state.manifest?.notify === undefined || state.effect !== null) return end;
  if (isNotifying(state)) return null;
  return notify(state, [{ event: 'end', key: 'end', at: iso(moment), reason: end.result.status }]) ?? end;
}

function notify(state: SessionState, news: readonly Notification[]): Step | null {
  const wanted = state.manifest?.notify?.events ?? [];
  const notifications = news
    .filter(({ event, key }) => wanted.includes(event) && state.notified?.includes(key) !== true)
    .slice(0, AT_ONCE);
  if (notifications.length === 0 || isNotifying(state)) return null;
  const { agent, context, seq } = state;
  const input = { agent, ...defined({ tenant: tenantOf(context) ?? undefined }), notifications };
  const summary = `notify: ${notifications.map(({ key }) => key).join(', ')}`;
  return { type: 'issue', command: { kind: 'notify', seq: seq + 1, input, summary } };
}

/** Records what is being told, and forgets what is over. */
export function notifying(state: SessionState, { notifications }: NotifyInput, moment: Moment): void {
  const current = newsOf(state, moment).map(({ key }) => key);
  const before = (state.notified ?? []).filter((key) => current.includes(key));
  state.notified = [...before, ...notifications.map(({ key }) => key)];
}

function isNotifying({ inFlight }: SessionState): boolean {
  return inFlight.some(({ kind }) => kind === 'notify');
}

/** All that a person is needed for now. */
function newsOf(state: SessionState, moment: Moment): Notification[] {
  const { wait, away } = state;
  const isQuiet = wait?.reason === 'agent_unavailable' && away !== undefined && away.checks < QUIET_CHECKS;
  const waits: Notification[] =
    wait === null || isQuiet
      ? []
      : [
          {
            event: 'wait',
            key: `wait ${wait.since}`,
            at: wait.since,
            reason: wait.reason,
            message: wait.message,
          },
        ];
  return [...waits, ...batchCalls(state).flatMap((call) => callNews(state, call, iso(moment)))];
}

function callNews({ manifest }: SessionState, call: ToolCall, at: string): Notification[] {
  const { id: callId, name: tool, effect, args, status, answers = [] } = call;
  const about = {
    at,
    callId,
    tool,
    effect,
    argsDigest: seenDigest(call),
    ...(manifest?.notify?.args === true && jsonSize(args) <= ARGS_BYTES ? { args } : {}),
  };
  switch (status.kind) {
    case 'approval': {
      const message = status.problem ?? status.question?.text;
      const until = defined({ expiresAt: status.expiresAt ?? undefined, message });
      const number = status.question === undefined ? '' : ` ${answers.length + 1}`;
      return [{ event: 'approval', key: `approval ${callId}${number}`, ...about, ...until }];
    }
    case 'unknown':
    case 'stuck': {
      const dispatchNo = dispatchNoOf(call);
      const key = `${status.kind} ${callId} ${dispatchNo}`;
      return [{ event: 'unknown', key, ...about, dispatchNo, reason: status.kind, message: status.reason }];
    }
    default:
      return [];
  }
}
