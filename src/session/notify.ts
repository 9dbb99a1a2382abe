/** Decides when a session sends notifications. Only sessions whose manifest asks for notifications send them. */
import { dispatchNoOf, type ToolCall } from '../contract/calls.ts';
import { tenantOf } from '../contract/context.ts';
import { defined, jsonSize } from '../contract/json.ts';
import { shortDigest } from '../contract/keys.ts';
import type { Notification, NotifyInput } from '../contract/notifications.ts';
import type { SessionState } from '../contract/state.ts';
import { decides } from './edition.ts';
import type { Moment, Step } from './events.ts';
import { seenDigest } from './question.ts';
import { batchCalls, iso } from './state.ts';
import { hasEarlier, isUndoing } from './undo.ts';

/** How many notifications one activity takes. The others follow. */
const AT_ONCE = 20;
/** Notifications leave out larger arguments. */
const ARGS_BYTES = 4_000;
/** A person is told of a missing agent only after this many looks: a deploy is over within the first ones. */
const QUIET_CHECKS = 3;

/** Starts the delivery of new notifications; otherwise `null`. */
export function notifyStep(state: SessionState, moment: Moment): Step | null {
  if (state.manifest?.notify === undefined) return null;
  const news = newsOf(state, moment);
  if (decides(state, 'tellsWhileStopping')) return notify(state, news.filter(staysWith(state)));
  return state.interrupted || (state.cancelling !== null && !isUndoing(state)) ? null : notify(state, news);
}

/** What still needs a person when the calls that have not begun are about to be skipped. */
function staysWith(state: SessionState): (news: Notification) => boolean {
  const { cancelling, interrupted } = state;
  if ((cancelling === null && !interrupted) || isUndoing(state)) return () => true;
  // A cancellation ends a wait, unless the session has to undo the effects of earlier runs first.
  const waits = cancelling === null || hasEarlier(state);
  return ({ event, reason }) => (event === 'wait' && waits) || (event === 'unknown' && reason === 'unknown');
}

/** Before a session closes, it sends a notification of its end. `null` while it sends that. */
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

/** Records which notifications are being sent, and forgets those that no longer hold. */
export function notifying(state: SessionState, { notifications }: NotifyInput, moment: Moment): void {
  const current = newsOf(state, moment).map(({ key }) => key);
  const before = (state.notified ?? []).filter((key) => current.includes(key));
  state.notified = [...before, ...notifications.map(({ key }) => key)];
}

function isNotifying({ inFlight }: SessionState): boolean {
  return inFlight.some(({ kind }) => kind === 'notify');
}

/** Everything for which the session needs a person now. */
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

function callNews(state: SessionState, call: ToolCall, at: string): Notification[] {
  const { manifest } = state;
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
      const edit = isEdited(call) && decides(state, 'tellsEdits') ? ` ${shortDigest(about.argsDigest)}` : '';
      return [{ event: 'approval', key: `approval ${callId}${number}${edit}`, ...about, ...until }];
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

/** Whether others must approve what a person has made of the arguments. */
function isEdited({ approvers }: ToolCall): boolean {
  return approvers?.given.some(({ decision }) => decision === 'edit') === true;
}
