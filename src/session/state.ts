/** Small functions that read and change the state, shared by the core. */
import type { CallStatus, ToolCall } from '../contract/calls.ts';
import { isFinal } from '../contract/calls.ts';
import type { SendInput } from '../contract/inputs.ts';
import type { JsonValue } from '../contract/json.ts';
import { argsDigest, chainMessage } from '../contract/keys.ts';
import type { BudgetLimits, ToolManifest } from '../contract/manifest.ts';
import {
  type Block,
  type CallResult,
  type Message,
  type MessageBlock,
  textsOf,
} from '../contract/messages.ts';
import type { InFlight, Phase, SessionState } from '../contract/state.ts';
import type { Child } from '../contract/tree.ts';
import { isMain, promptBytes } from '../contract/view.ts';
import type { Moment } from './events.ts';

/** The moment that was formatted last: all steps of a workflow task have the same moment. */
const written = { now: Number.NaN, text: '' };

/** The moment as ISO 8601 in UTC. */
export function iso({ now }: Moment): string {
  if (now !== written.now) {
    written.text = new Date(now).toISOString();
    written.now = now;
  }
  return written.text;
}

/** The time-out of a tool that is missing from the current definition. */
export const DEFAULT_TIMEOUT_MS = 60_000;

/** Milliseconds without a heartbeat after which an activity of the session counts as lost. */
export function heartbeatMs({ manifest }: SessionState): number {
  return manifest?.heartbeatMs ?? 10_000;
}

/** A new call. */
export function freshCall(
  id: string,
  { turn, message }: Pick<SessionState, 'turn' | 'message'>,
  name: string,
  args: JsonValue,
): ToolCall {
  return {
    id,
    turn,
    message,
    name,
    args,
    argsDigest: argsDigest(name, args),
    effect: 'read',
    scope: 'call',
    idempotencyKey: '',
    status: { kind: 'ready' },
    issuedAt: null,
    completedAt: null,
    dispatches: [],
    decision: null,
    resolutions: [],
    result: null,
    replayOf: null,
  };
}

/** The newest call with an id, or `undefined`. */
export function findCall(state: SessionState, callId: string): ToolCall | undefined {
  return state.calls.findLast((call) => call.id === callId);
}

/** The call with an id. @throws Error when there is none */
export function theCall(state: SessionState, callId: string): ToolCall {
  const call = findCall(state, callId);
  if (call === undefined) throw new Error(`no call ${callId} in session ${state.sessionId}`);
  return call;
}

/** The calls of the present batch, in the model's order. */
export function batchCalls(state: SessionState): ToolCall[] {
  return state.batch.map((id) => theCall(state, id));
}

/** The tool of a call in the current definition; `undefined` when it was removed. */
export function toolOf(state: SessionState, call: ToolCall): ToolManifest | undefined {
  return state.manifest?.tools[call.name];
}

/** Whether the outcome of a call's dispatch is not known yet. */
export function isOpen(call: ToolCall): boolean {
  const { kind } = call.status;
  return (
    kind === 'running' ||
    kind === 'awaiting' ||
    kind === 'settling' ||
    kind === 'verifying' ||
    kind === 'unknown'
  );
}

/**
 * Whether the turn need not wait for a global effect any longer: the effect needs a person, or takes longer than a call
 * may. The turn always waits for a sub-agent.
 */
export function isGivenUp(state: SessionState, { id, status }: ToolCall): boolean {
  if (state.children?.some(({ callId, end }) => callId === id && end === undefined)) return false;
  if (status.kind !== 'awaiting' || flightOf(state, id, 'attach') !== undefined) return false;
  return status.checks > 0 || status.person !== undefined;
}

/** Whether an idempotent call was stopped after a dispatch, so that it may have happened. */
export function wasStopped({ effect, dispatches }: ToolCall): boolean {
  return effect === 'idempotent' && dispatches.some(({ outcome }) => outcome === 'unknown');
}

/** Whether only the check of the call's edit can tell if the call happened after a rewind's checkpoint. */
export function isUntold({ status }: ToolCall): boolean {
  return status.kind === 'preparing' && status.rewound === true;
}

/** The sub-agents that have not ended. */
export function openChildren({ children = [] }: SessionState): Child[] {
  return children.filter(({ end }) => end === undefined);
}

/** The sub-agents in the background that have not ended. */
export function openBackground(state: SessionState): (Child & Required<Pick<Child, 'background'>>)[] {
  return openChildren(state).filter(
    (child): child is ReturnType<typeof openBackground>[number] => child.background !== undefined,
  );
}

/** The command of one of these kinds that is in flight for a call. */
export function flightOf(
  state: SessionState,
  callId: string,
  ...kinds: InFlight['kind'][]
): InFlight | undefined {
  return state.inFlight.find((flight) => flight.callId === callId && kinds.includes(flight.kind));
}

const TIMERS: ReadonlySet<InFlight['kind']> = new Set([
  'settle',
  'backoff',
  'model_backoff',
  'approval_expiry',
  'recheck',
  'agent_recheck',
  'pool_recheck',
  'child_recheck',
  'rate_recheck',
  'ttl',
  'sleep',
  'reminder',
]);

/** Whether a command in flight is a timer, not an activity. */
export function isTimer({ kind }: InFlight): boolean {
  return TIMERS.has(kind);
}

/** Whether an activity is in flight. */
export function hasActivity({ inFlight }: SessionState): boolean {
  return inFlight.some((flight) => !isTimer(flight));
}

/** Ends a call with the result that the model is told. */
export function endCall(
  call: ToolCall,
  status: Extract<CallStatus, { kind: 'completed' | 'failed' | 'skipped' }>,
  result: CallResult,
  at: string,
): void {
  call.status = status;
  call.result = result;
  call.completedAt = at;
}

/** Whether the session has or had a message with an id, also a queued or withdrawn one. */
export function hasMessage({ inbox, withdrawn, transcript, past }: SessionState, id: string): boolean {
  return (
    idsOf(inbox).has(id) ||
    idsOf(transcript).has(id) ||
    past?.messageIds.includes(id) === true ||
    withdrawn?.some((one) => one.id === id) === true
  );
}

/** The message ids of each array, as far as they were read: one workflow task may bring thousands of messages. */
const known = new WeakMap<readonly { id: string }[], { ids: Set<string>; last: string | undefined }>();

/** The ids of messages. An array only grows at its end, or is emptied; an edit makes a new array. */
function idsOf(messages: readonly { id: string }[]): ReadonlySet<string> {
  let found = known.get(messages);
  const isGrown = found !== undefined && messages[found.ids.size - 1]?.id === found.last;
  if (found === undefined || !isGrown) {
    found = { ids: new Set(), last: undefined };
    known.set(messages, found);
  }
  // No two messages share an id, so the size of the set tells how many messages were read.
  for (let i = found.ids.size; i < messages.length; i++) {
    found.last = messages[i]?.id;
    found.ids.add(found.last ?? '');
  }
  return found.ids;
}

/** The blocks of a person's message with an id, or `undefined`. */
export function blocksOf(state: SessionState, id: string): readonly Block[] | undefined {
  const queued = state.inbox.find((message) => message.id === id);
  if (queued !== undefined) return messageBlocks(queued);
  return state.transcript.find((message) => message.id === id && message.role === 'user')?.blocks;
}

/** The blocks of a person's message as they enter the transcript. */
export function messageBlocks({ text, blocks }: Pick<SendInput, 'text' | 'blocks'>): MessageBlock[] {
  return blocks ?? [{ kind: 'text', text }];
}

/** An id for the next message: from its position, unless a message with that id was sent meanwhile. */
export function freshMessageId(state: SessionState): string {
  let n = state.position.count + state.inbox.length;
  while (hasMessage(state, `msg_${n}`)) n += 1;
  return `msg_${n}`;
}

/** An id that is not taken: the base, with a number if the base is taken. */
export function freeId(base: string, isTaken: (id: string) => boolean): string {
  let id = base;
  for (let n = 2; isTaken(id); n++) id = `${base}_${n}`;
  return id;
}

/** Adds a message to the transcript and moves the position. */
export function appendMessage(state: SessionState, message: Message): void {
  state.transcript.push(message);
  state.position = {
    count: state.position.count + 1,
    digest: chainMessage(state.position.digest, message),
  };
  if (!isMain(message)) return;
  state.promptBytes += promptBytes(message);
  if (message.pinned === true) state.pinnedBytes = (state.pinnedBytes ?? 0) + promptBytes(message);
}

/** Adds a notice for people. The last hundred notices are kept. */
export function note(state: SessionState, moment: Moment, kind: string, message: string): void {
  state.notices.push({ at: iso(moment), kind, message: message.slice(0, 2_000) });
  if (state.notices.length > 100) state.notices.splice(0, state.notices.length - 100);
}

/** Pauses a session that is not paused. */
export function pause(state: SessionState, paused: NonNullable<SessionState['paused']>): void {
  if (state.paused !== null) return;
  state.paused = paused;
  state.pauses.push({ pausedAt: paused.at, resumedAt: null, by: paused.by });
}

/** Whether something is in flight that counts as active time. */
export function isActive(state: SessionState): boolean {
  return state.inFlight.some(({ kind }) => ACTIVE.has(kind));
}

const ACTIVE: ReadonlySet<InFlight['kind']> = new Set(['model', 'reads', 'tool', 'aside']);

/** Whether a call, or the effect that it waits for, needs a person. */
function needsPerson({ status }: ToolCall): boolean {
  return (
    status.kind === 'unknown' ||
    status.kind === 'stuck' ||
    (status.kind === 'awaiting' && status.person !== undefined)
  );
}

/** What the session is doing. */
export function phaseOf(state: SessionState): Phase {
  if (state.status.kind !== 'active') return 'closed';
  const calls = batchCalls(state);
  if (calls.some(needsPerson)) return 'unknown_effect';
  if (state.cancelling !== null) {
    const asks = calls.some((call) => call.compensates !== undefined && call.status.kind === 'approval');
    if (asks && state.undo?.givenUp !== true) return 'approval';
    // The session waits because it could not read which effects of earlier runs it must undo.
    const isStopped = state.undo?.whole === true && state.undo.begun === true && state.wait !== null;
    return isStopped && state.undo?.givenUp !== true ? 'waiting' : 'cancelling';
  }
  if (state.paused !== null || state.sealed !== null) return 'paused';
  if (state.wait !== null) return 'waiting';
  if (state.manifest === null) return 'starting';
  const isThinking = ({ kind, reads, gives }: InFlight): boolean =>
    kind === 'model_backoff' ||
    kind === 'takenIds' ||
    (kind === 'describe' && state.pool?.look === true) ||
    (kind === 'draw' && gives !== true) ||
    (kind === 'model' && reads === undefined);
  if (state.limited !== undefined || state.inFlight.some(isThinking)) return 'thinking';
  if (calls.some((call) => call.status.kind === 'approval')) return 'approval';
  if (calls.some((call) => !isFinal(call))) return 'acting';
  // The session continues in a new run in the middle of a turn.
  const isNew = state.past !== undefined || state.inFlight.some(({ kind }) => kind === 'storePast');
  if (isNew && lastMessage(state)?.role !== 'assistant') return 'thinking';
  // A task ends by itself when its sub-agents have ended, so it is not idle until then.
  return state.mode === 'task' && openBackground(state).length > 0 ? 'acting' : 'idle';
}

/** Only the caps that are set, so that no `undefined` enters the state. */
export function definedLimits(limits: { [K in keyof BudgetLimits]: number | undefined }): BudgetLimits {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}

/** The last message of the conversation itself. */
export function lastMessage({ transcript }: Pick<SessionState, 'transcript'>): Message | undefined {
  return transcript.findLast(isMain);
}

function isAnswer(message: Message): boolean {
  return message.role === 'assistant' && isMain(message);
}

/** The value of the last answer of the model. */
export function lastOutput({ transcript }: SessionState): JsonValue | undefined {
  return transcript.findLast(isAnswer)?.output;
}

/** The text of the last answer of the model, or its beginning when that answer has left the run. */
export function lastText({ transcript, past }: SessionState): string {
  const answer = transcript.findLast(isAnswer);
  if (answer === undefined) return past?.lastText ?? '';
  return textsOf(answer).join('\n');
}
