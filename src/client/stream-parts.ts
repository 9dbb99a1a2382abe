/** The durable parts of a stream: what has changed in a session from one state to the next. */
import { type DecisionRecord, isFinal, type ToolCall } from '../contract/calls.ts';
import { canonicalJson, defined, type JsonObject } from '../contract/json.ts';
import { type Block, type Message, textsOf } from '../contract/messages.ts';
import type { Notice, Phase, QueuedMessage, SessionState, Wait } from '../contract/state.ts';
import type { BudgetView, PendingCall, SessionView } from '../contract/views.ts';
import { phaseOf } from '../session/state.ts';
import { budgetView, pendingCalls, sessionView } from '../session/views.ts';

/** What has happened to a tool call. `changed`: something else, such as a wait for its turn or for a person. */
export type CallNews =
  | 'asked'
  | 'edited'
  | 'dispatched'
  | 'outcome'
  | 'verified'
  | 'resolved'
  | 'replayed'
  | 'finished'
  | 'changed';

/** Why a session continues in another run: it is long, it was rewound, or somebody has reset it in Temporal. */
export type RunCause = 'continued' | 'rewound' | 'reset';

/** Something that has happened, as the history records it. */
export type SessionNews =
  /** A message is recorded: `text` is the text of its blocks. The answer of the model has the role `assistant`. */
  | ({ type: 'message'; text: string } & Pick<
      Message,
      'id' | 'role' | 'blocks' | 'summary' | 'output' | 'repair' | 'aside' | 'report'
    >)
  /** Something people may want to see, such as a call that was answered from the record of an equal one. */
  | { type: 'notice'; notice: Notice }
  /** A tool call that is new or has changed. */
  | { type: 'call'; call: ToolCall; news: CallNews[] }
  /** A call waits for a person's decision, which {@link Session.decide} takes. */
  | { type: 'approval'; state: 'asked'; call: PendingCall }
  | { type: 'approval'; state: 'decided'; callId: string; decision: DecisionRecord }
  /** The session waits, and `wait.next` says for what; `null`: it goes on. */
  | { type: 'wait'; wait: Wait | null }
  | { type: 'pause'; paused: SessionView['paused'] }
  /** The queue of messages that wait for the end of the turn has changed: these wait now. */
  | { type: 'queue'; queue: QueuedMessage[] }
  /** The session goes on in another run. */
  | { type: 'run'; runId: string; cause: RunCause }
  /** An edit, a rewind or a reset: the messages from index `from` on are void. What stands in their place follows. */
  | { type: 'transcript'; from: number }
  | { type: 'spent'; budget: BudgetView }
  | { type: 'closed'; status: SessionView['status'] }
  /** What the session does now, or whom it waits for. */
  | { type: 'phase'; phase: Phase; view: SessionView };

/** What a reader has been told of a session. */
export interface Told {
  /** The messages of the run. The list may have grown since. */
  transcript: readonly Message[];
  /** Index in the session of the first of these messages, and after the last one that was told. */
  first: number;
  messages: number;
  /** The number of calls, and those that had not ended. */
  calls: number;
  open: ReadonlyMap<string, ToolCall>;
  notice: Notice | undefined;
  wait: string;
  paused: string;
  queue: string;
  spent: string;
  closed: boolean;
  phase: string;
}

/** What a reader knows who has been told everything up to a state. */
export function toldOf(state: SessionState, before: Told | null = null): Told {
  const { transcript, past, calls, loading } = state;
  const first = past?.messages ?? 0;
  const open = calls.filter((call) => !isFinal(call));
  const told: Told = {
    transcript,
    first,
    messages: first + transcript.length,
    calls: (past?.calls ?? 0) + calls.length,
    open: new Map(open.map((call) => [call.id, structuredClone(call)])),
    notice: state.notices.at(-1),
    ...singles(state),
  };
  if (loading === null || before === null) return told;
  // The past of a rewound session is not loaded yet.
  const { transcript: held, first: from, messages, calls: count, open: still, notice } = before;
  return { ...told, transcript: held, first: from, messages, calls: count, open: still, notice };
}

/** What a new reader counts as told: the past, but not what is open, and not the phase. */
export function toldToNewcomer(state: SessionState): Told {
  const open = state.calls.findIndex((call) => !isFinal(call));
  const told = toldOf(state);
  return {
    ...told,
    calls: open < 0 ? told.calls : (state.past?.calls ?? 0) + open,
    open: new Map(),
    wait: 'null',
    paused: 'null',
    queue: '[]',
    closed: false,
    phase: '',
  };
}

/** The news between what a reader has been told and a state, in the order in which they came. The last is the phase. */
export function partsBetween(before: Told | null, state: SessionState, cause?: RunCause): SessionNews[] {
  const parts: SessionNews[] = cause === undefined ? [] : [{ type: 'run', runId: state.runId, cause }];
  const loaded = state.loading === null;
  const view = sessionView(state);
  const from = loaded ? unchanged(before, state) : state.transcript.length;
  const first = state.past?.messages ?? 0;
  const isCut = loaded && before !== null && first + from < before.messages;
  if (isCut) parts.push({ type: 'transcript', from: first + from });
  const messages = state.transcript.slice(from);
  const requested = new Set(messages.flatMap(({ blocks }) => blocks.flatMap(callIdOf)));
  const calls = loaded ? changedCalls(before, state, isCut ? requested : new Set()) : [];
  for (const { before: was, call } of calls) if (was !== undefined) parts.push(callPart(was, call));
  for (const { id, role, blocks, summary, output, repair, aside, report } of messages) {
    const text = textsOf({ blocks }).join('');
    parts.push({
      type: 'message',
      id,
      role,
      text,
      blocks,
      ...defined({ summary, output, repair, aside, report }),
    });
  }
  for (const { before: was, call } of calls) if (was === undefined) parts.push(callPart(was, call));
  for (const { before: was, call } of calls) parts.push(...approvalParts(was, call, view));
  if (loaded) parts.push(...newNotices(before?.notice, state.notices).map(noticePart));
  const now = singles(state);
  if (now.wait !== (before?.wait ?? 'null')) parts.push({ type: 'wait', wait: view.wait });
  if (now.paused !== (before?.paused ?? 'null')) parts.push({ type: 'pause', paused: view.paused });
  if (now.queue !== (before?.queue ?? '[]')) parts.push({ type: 'queue', queue: queueOf(state) });
  if (before !== null && now.spent !== before.spent) parts.push({ type: 'spent', budget: budgetView(state) });
  if (now.closed && before?.closed !== true) parts.push({ type: 'closed', status: view.status });
  if (now.phase !== before?.phase) parts.push({ type: 'phase', phase: view.phase, view });
  // Copy the parts, because the state is changed in place.
  return structuredClone(parts);
}

/** The messages that wait for the end of a turn. The first message only waits for the agent, so it does not count. */
function queueOf(state: SessionState): QueuedMessage[] {
  return phaseOf(state) === 'starting' ? [] : state.inbox;
}

/** The parts of a state that have one value, as text to compare. */
function singles(
  state: SessionState,
): Pick<Told, 'wait' | 'paused' | 'queue' | 'spent' | 'closed' | 'phase'> {
  const { wait, paused, budget, status } = state;
  const { activeMs: _active, ...spent } = budget.spent;
  const pending = pendingCalls(state).map((call) => [
    call.callId,
    call.argsDigest,
    call.dispatchNo,
    call.status,
  ]);
  return {
    wait: JSON.stringify(wait),
    paused: JSON.stringify(paused),
    queue: JSON.stringify(queueOf(state).map(({ id, edited }) => [id, edited?.at])),
    spent: JSON.stringify([spent, budget.limits]),
    closed: status.kind !== 'active',
    phase: JSON.stringify([phaseOf(state), pending, wait?.since, state.limited?.since]),
  };
}

/** Index in the run of the first message that a reader has not been told as it is now. */
function unchanged(before: Told | null, { transcript, past }: SessionState): number {
  if (before === null) return 0;
  const first = past?.messages ?? 0;
  const end = Math.min(before.messages - first, transcript.length);
  if (before.transcript === transcript) return end;
  for (let at = Math.max(0, before.first - first); at < end; at++) {
    const was = before.transcript[at + first - before.first];
    const is = transcript[at];
    if (was !== is && textOf(was) !== textOf(is)) return at;
  }
  return Math.max(0, end);
}

interface ChangedCall {
  before: ToolCall | undefined;
  call: ToolCall;
}

/** @param requested - calls of messages that have taken the place of others: all of them are new */
function changedCalls(
  before: Told | null,
  { calls, past }: SessionState,
  requested: ReadonlySet<string>,
): ChangedCall[] {
  const first = past?.calls ?? 0;
  return calls.flatMap((call, index) => {
    const was = requested.has(call.id) ? undefined : before?.open.get(call.id);
    const isNew = first + index >= (before?.calls ?? 0) || requested.has(call.id);
    if (!isNew && was === undefined && isFinal(call)) return [];
    return was !== undefined && keyOf(was) === keyOf(call) ? [] : [{ before: was, call }];
  });
}

function keyOf({ argsDigest, status, dispatches, decision, approvers, resolutions }: ToolCall): string {
  return JSON.stringify([argsDigest, status, dispatches, decision, approvers, resolutions]);
}

function callPart(before: ToolCall | undefined, call: ToolCall): SessionNews {
  const news: CallNews[] = [];
  const { argsDigest, dispatches, resolutions, replayOf } = call;
  if (before === undefined) news.push('asked');
  else if (before.argsDigest !== argsDigest) news.push('edited');
  if (
    dispatches.some((dispatch, i) => dispatch.outcome !== null && isNewOutcome(before, dispatch.outcome, i))
  )
    news.push('outcome');
  if (before?.status.kind === 'verifying' && call.status.kind !== 'verifying') news.push('verified');
  if (resolutions.length > (before?.resolutions.length ?? 0)) news.push('resolved');
  if (dispatches.length > (before?.dispatches.length ?? 0)) news.push('dispatched');
  if (isFinal(call) && (before === undefined || !isFinal(before)))
    news.push(replayOf === null ? 'finished' : 'replayed');
  return { type: 'call', call, news: news.length === 0 ? ['changed'] : news };
}

function isNewOutcome(before: ToolCall | undefined, outcome: string, index: number): boolean {
  return before?.dispatches[index]?.outcome !== outcome;
}

function approvalParts(before: ToolCall | undefined, call: ToolCall, view: SessionView): SessionNews[] {
  const { id: callId, decision, status } = call;
  const parts: SessionNews[] = [];
  if (decision !== null && JSON.stringify(decision) !== JSON.stringify(before?.decision ?? null))
    parts.push({ type: 'approval', state: 'decided', callId, decision });
  const pending = view.pending.find((waiting) => waiting.callId === callId);
  // A call that several people must approve asks again after each of them.
  const given = call.approvers?.given.length;
  const isNext = before?.status.kind !== 'approval' || given !== before.approvers?.given.length;
  const isAsked = status.kind === 'approval' && isNext;
  if (isAsked && pending !== undefined) parts.push({ type: 'approval', state: 'asked', call: pending });
  return parts;
}

/** The notices after the last one that was told. The list loses its oldest notices. */
function newNotices(last: Notice | undefined, notices: readonly Notice[]): readonly Notice[] {
  if (last === undefined) return notices;
  const key = textOf(last);
  const same = notices.lastIndexOf(last);
  const at = same >= 0 ? same : notices.findLastIndex((notice) => textOf(notice) === key);
  return at >= 0 ? notices.slice(at + 1) : notices.filter((notice) => notice.at > last.at);
}

/** A value as text, with sorted fields: a value that was loaded from a checkpoint may have them in another order. */
function textOf(value: Message | Notice | undefined): string {
  return value === undefined ? '' : canonicalJson(value as unknown as JsonObject);
}

function noticePart(notice: Notice): SessionNews {
  return { type: 'notice', notice };
}

function callIdOf(block: Block): string[] {
  return block.kind === 'tool_call' ? [block.id] : [];
}
