/** Calls that the session answers itself: sleep, reminders, the scratchpad. */
import { type BuiltIn, REMINDERS, type Sleeping } from '../contract/built-in.ts';
import type { ToolCall } from '../contract/calls.ts';
import type { JsonValue } from '../contract/json.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import { stopAgent } from './agent-stop.ts';
import type { Moment, Step } from './events.ts';
import { readScratchpad, type ScratchpadArgs } from './scratchpad.ts';
import { batchCalls, endCall, freeId, hasMessage, iso } from './state.ts';

/** ISO 8601 with a zone: without a zone, the time would depend on the machine. */
const WITH_ZONE = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/** The arguments of the timed tools, which their schemas have checked. */
interface TimedArgs {
  until?: string;
  seconds?: number;
  reason?: string;
  text?: string;
}

/** Answers a call of a built-in tool. The arguments fit the tool's schema. */
export function answerBuiltIn(state: SessionState, call: ToolCall, builtIn: BuiltIn, moment: Moment): void {
  const at = iso(moment);
  call.issuedAt = at;
  const end = (content: JsonValue, isError = false): void =>
    endCall(
      call,
      isError ? { kind: 'failed', certain: true } : { kind: 'completed' },
      { content, isError },
      at,
    );
  if (builtIn.kind === 'agent_stop') {
    stopAgent(state, call, moment);
    return;
  }
  if (builtIn.kind === 'scratchpad') {
    const { content, isError } = readScratchpad(state, builtIn.verb, call.args as ScratchpadArgs);
    end(content, isError);
    return;
  }
  const args = call.args as TimedArgs;
  const time = timeOf(args, builtIn.maxMs, moment);
  if (!time.ok) end(time.problem, true);
  else if (time.ms <= moment.now) end(`${time.until} is in the past: it is ${at}. Nothing was waited for.`);
  else if (builtIn.kind === 'sleep') {
    call.status = { kind: 'sleeping', until: time.until, reason: args.reason ?? '' };
  } else {
    const problem = remind(state, call, { at: time.until, text: args.text ?? '' }, at);
    end(problem ?? `You get the message at ${time.until}.`, problem !== null);
  }
}

/** The time that a call names: `until`, or `seconds` from now. */
function timeOf(
  { until, seconds }: TimedArgs,
  maxMs: number,
  { now }: Moment,
): { ok: true; until: string; ms: number } | { ok: false; problem: string } {
  const refuse = (problem: string) => ({ ok: false, problem }) as const;
  if ((until === undefined) === (seconds === undefined))
    return refuse('Give either until, a time such as 2030-01-31T09:00:00Z, or seconds.');
  const ms = typeof seconds === 'number' ? now + seconds * 1_000 : timestamp(until ?? '');
  if (Number.isNaN(ms))
    return refuse(
      `until is ${JSON.stringify(until)}: write ISO 8601 with a zone, such as 2030-01-31T09:00:00Z.`,
    );
  if (ms > now + maxMs) {
    const latest = new Date(now + maxMs).toISOString();
    return refuse(`The time is too far away: the latest is ${latest}. Choose an earlier one.`);
  }
  return { ok: true, until: new Date(Math.max(0, ms)).toISOString(), ms };
}

function timestamp(text: string): number {
  return WITH_ZONE.test(text) ? Date.parse(text) : Number.NaN;
}

function remind(
  state: SessionState,
  call: ToolCall,
  { at, text }: { at: string; text: string },
  setAt: string,
): string | null {
  const reminders = state.reminders ?? [];
  if (state.mode !== 'chat') return 'This session ends with its answer: sleep instead.';
  if (reminders.length >= REMINDERS)
    return `${REMINDERS} reminders wait already, and there is room for no more.`;
  const id = freshId(state, `reminder_${call.id}`);
  state.reminders = [...reminders, { id, at, text, setAt }].sort((a, b) => (a.at < b.at ? -1 : 1));
  return null;
}

function freshId(state: SessionState, base: string): string {
  const isTaken = (id: string): boolean =>
    hasMessage(state, id) || state.reminders?.some((reminder) => reminder.id === id) === true;
  return freeId(base, isTaken);
}

/** The timer of the next reminder; otherwise `null`. */
export function reminderStep(state: SessionState, moment: Moment): Step | null {
  const [next] = state.reminders ?? [];
  // A rewind may bring back a reminder whose time has passed.
  const due = Math.max(Date.parse(next?.at ?? ''), moment.now + 1);
  const timer = state.inFlight.find(({ kind }) => kind === 'reminder');
  if (timer !== undefined) {
    // A reminder with an earlier time was set, or the session is about to end.
    const isStale = next === undefined || isEnding(state) || Date.parse(timer.until ?? '') > due;
    return isStale ? { type: 'stop', seq: timer.seq } : null;
  }
  if (next === undefined || isEnding(state)) return null;
  const ms = due - moment.now;
  const summary = `reminder ${next.id}`;
  return {
    type: 'issue',
    timer: 'reminder',
    command: { kind: 'timer', seq: state.seq + 1, ms, summary },
  };
}

function isEnding({ cancelling, finishing, sealed }: SessionState): boolean {
  return cancelling !== null || finishing || sealed !== null;
}

/** Queues the messages whose time has come. */
export function deliverReminders(state: SessionState, { until = '' }: InFlight, moment: Moment): void {
  const at = iso(moment);
  const isDue = (reminder: { at: string }): boolean => reminder.at <= at || reminder.at <= until;
  const reminders = state.reminders ?? [];
  for (const reminder of reminders.filter(isDue)) {
    const text = `Reminder that you set at ${reminder.setAt}: ${reminder.text}`;
    if (!hasMessage(state, reminder.id)) state.inbox.push({ id: reminder.id, text, by: 'reminder', at });
  }
  const later = reminders.filter((reminder) => !isDue(reminder));
  if (later.length > 0) state.reminders = later;
  else delete state.reminders;
}

/** Ends a call that waits for a time. */
export function wake(call: ToolCall, by: string | null, moment: Moment): void {
  if (call.status.kind !== 'sleeping') return;
  const at = iso(moment);
  const why = by === null ? 'The time has come' : `${by} ended the wait early`;
  const reason = call.status.reason === '' ? '' : ` You waited for: ${call.status.reason}`;
  endCall(call, { kind: 'completed' }, { content: `${why}: it is ${at}.${reason}`, isError: false }, at);
}

/** The calls that wait for a time. */
export function sleepingCalls(state: SessionState): Sleeping[] {
  return batchCalls(state).flatMap(({ id, argsDigest, status }) =>
    status.kind === 'sleeping'
      ? [{ callId: id, argsDigest, until: status.until, reason: status.reason }]
      : [],
  );
}
