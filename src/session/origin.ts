/** Starts a session from a checkpoint: what a fork or a rewound session takes over from the past. */
import { isFinal, type ToolCall } from '../contract/calls.ts';
import { canonicalJson, defined } from '../contract/json.ts';
import type { Loaded } from '../contract/loaded.ts';
import type { Origin } from '../contract/origin.ts';
import { isOver } from '../contract/past.ts';
import type { SessionState } from '../contract/state.ts';
import { addAuthor, expiryFrom, isPartly } from './approvers.ts';
import { leaveBehind, lookAtAll } from './background.ts';
import { capProblem } from './budget.ts';
import { applyEdit, editProblem } from './edit.ts';
import { stopped } from './effect-outcome.ts';
import type { Moment } from './events.ts';
import { newShare } from './pool.ts';
import {
  batchCalls,
  endCall,
  freshMessageId,
  hasMessage,
  isOpen,
  iso,
  note,
  pause,
  theCall,
} from './state.ts';
import { childOf } from './sub-agents.ts';
import { isCompensation, requestUndo, undoSince } from './undo.ts';
import { stop } from './wait.ts';

/** Parses what was loaded. @returns `null` when this version does not know the state's schema */
export function readLoaded(text: string): Loaded | null {
  try {
    const loaded = JSON.parse(text) as Loaded;
    const schemas: unknown[] = [loaded.state.schema, loaded.state.manifest?.schema ?? 1];
    return schemas.every((schema) => schema === 1) ? loaded : null;
  } catch {
    return null;
  }
}

/** Puts a checkpoint's state into a session that has done nothing yet. The session's own first message stays queued. */
export function plant(state: SessionState, origin: Origin, loaded: Loaded, moment: Moment): void {
  const { state: past, after } = loaded;
  const { edits = null, undo, cancel } = state.loading ?? {};
  state.loading = null;
  state.manifest = past.manifest;
  if (past.agentChanges !== undefined) state.agentChanges = past.agentChanges;
  state.searchAttributes = past.searchAttributes;
  state.agent = past.agent;
  const isOther = state.context !== null && canonicalJson(state.context) !== canonicalJson(past.context);
  state.context ??= past.context;
  state.mode = past.mode;
  state.turn = past.turn;
  state.message = past.message;
  state.messagesTaken = past.messagesTaken;
  if (past.past !== undefined) state.past = past.past;
  state.transcript = past.transcript;
  state.position = past.position;
  state.promptBytes = past.promptBytes;
  state.measured = past.measured;
  if (past.pinnedBytes !== undefined) state.pinnedBytes = past.pinnedBytes;
  if (past.summarized !== undefined) state.summarized = past.summarized;
  if (past.answeredBy !== undefined) state.answeredBy = past.answeredBy;
  if (past.instructedBy !== undefined) state.instructedBy = past.instructedBy;
  if (past.finishReasons !== undefined) state.finishReasons = past.finishReasons;
  if (past.withdrawn !== undefined) state.withdrawn = past.withdrawn;
  const own = state.inbox;
  state.inbox = past.inbox;
  if (origin.kind === 'fork') leaveBehind(state, past, moment);
  // Message ids come from positions, so a message of the past may have the same id.
  for (const message of own) {
    state.inbox.push(hasMessage(state, message.id) ? { ...message, id: freshMessageId(state) } : message);
  }
  state.calls = past.calls;
  state.batch = past.batch;
  if (past.authors !== undefined) state.authors = past.authors;
  addAuthor(state, origin.by);
  state.plan = past.plan;
  state.scratchpadRoot ??= past.scratchpadRoot;
  if (past.scratchpad !== undefined) state.scratchpad = past.scratchpad;
  if (past.reminders !== undefined) state.reminders = past.reminders;
  state.loop = past.loop;
  state.budget.limits = { ...past.budget.limits, ...state.budget.limits };
  if (past.pool !== undefined) state.pool ??= newShare(past.pool.id);
  state.notices = past.notices;
  if (origin.kind === 'rewind') {
    if (past.parent !== undefined) state.parent = past.parent;
    if (past.children !== undefined) state.children = past.children;
    if (past.childrenUsed !== undefined) state.childrenUsed = past.childrenUsed;
    // The abandoned run may have received a report.
    lookAtAll(state);
    state.namespace = past.namespace;
    state.createdAt = past.createdAt;
    const resumed = { resumedAt: iso(moment), resumedBy: origin.by };
    const pauses = past.pauses.map((pause) => (isOver(pause) ? pause : { ...pause, ...resumed }));
    state.pauses = [...pauses, ...state.pauses];
    // Money that was spent after the checkpoint stays spent.
    if (after !== null) {
      state.budget.spent = after.spent;
      if (after.pool !== undefined) state.pool = after.pool;
      state.messagesTaken = after.messagesTaken;
    }
    // An effect that answered an equal call of the abandoned run can answer an equal call again.
    state.carried = (after?.effects ?? past.carried).map(({ takenBy, ...effect }) =>
      takenBy === undefined || takenBy > past.message ? effect : { ...effect, takenBy },
    );
  }
  // At the checkpoint, the undo of an earlier rewind may have been open.
  const held = past.undo?.batch ?? [];
  if (past.undo !== undefined && held.length > 0) {
    state.undo = { ...past.undo, givenUp: true };
    delete state.undo.next;
  }
  const calls = [...batchCalls(state), ...held.map((id) => theCall(state, id))];
  for (const call of calls) {
    if (isFinal(call)) continue;
    if (isCompensation(call) && (origin.kind === 'fork' || !isOpen(call))) {
      const content = `A ${origin.kind} does not go on with an undo.`;
      endCall(call, { kind: 'skipped' }, { content, isError: true }, iso(moment));
      continue;
    }
    reopen(state, call, origin, loaded, moment, origin.kind === 'fork' || isOther);
    askAnew(state, call, moment);
  }
  // For these keys an open call of the batch holds the doubt itself.
  const asked = new Set(calls.filter(isOpen).map(({ idempotencyKey }) => idempotencyKey));
  state.carried = state.carried.filter((e) => e.doubt === undefined || !asked.has(e.idempotencyKey));
  note(
    state,
    moment,
    origin.kind,
    `${origin.by}: ${origin.kind} of ${origin.sessionId} at ${origin.runId}:${origin.eventId}: ${origin.reason}`,
  );
  const refused = edits === null ? null : editProblem(state, edits);
  if (refused !== null) note(state, moment, 'edit_refused', refused.message);
  else if (edits !== null) applyEdit(state, edits, moment);
  if (refused !== null) {
    const reason = `the edits of the ${origin.kind} were refused: ${refused.message}`;
    pause(state, { by: origin.by, at: iso(moment), reason, requestedNow: false });
  }
  if (after?.undo !== undefined) undoSince(state, undo, after.undo, origin.by, moment);
  if (cancel !== undefined) {
    const { by, verified, reason } = origin;
    const at = iso(moment);
    state.cancelling ??= { by, at, reason };
    requestUndo(state, cancel, { by, ...defined({ verified }), at, whole: true }, moment);
  }
  const problem = state.manifest && capProblem(state.manifest, state.budget.limits);
  if (problem !== null) stop(state, moment, 'budget', problem);
}

/** Reopens a call that was open at the checkpoint. No worker has the call any more. */
function reopen(
  state: SessionState,
  call: ToolCall,
  origin: Origin,
  { after }: Loaded,
  moment: Moment,
  isChecked: boolean,
): void {
  const { status } = call;
  const { kind } = status;
  // A sleeping call waits until the same time as before.
  if (kind === 'sleeping') return;
  if (origin.kind === 'fork' && isPartly(call)) {
    // The call asks for approval again: only complete approvals still count.
    if (call.approvers !== undefined) call.approvers.given = [];
    call.decision = null;
  }
  // The key of edited arguments is not known until they have been checked.
  const edited = status.kind === 'preparing' && status.before !== undefined;
  if (edited && after !== null) call.status = { ...status, rewound: true };
  if (call.effect === 'mutate' && !edited) {
    const since = after?.effects.find(
      ({ callId, idempotencyKey, open }) =>
        callId === call.id && idempotencyKey === call.idempotencyKey && open !== true,
    );
    if (since?.undone === true) {
      call.compensatedBy = origin.runId;
      const content = `${call.name} happened, and was undone later.`;
      endCall(call, { kind: 'failed', certain: false }, { content, isError: true }, iso(moment));
      return;
    }
    if (since !== undefined && since.doubt === undefined) {
      endCall(call, { kind: 'completed' }, { content: since.output, isError: false }, iso(moment));
      return;
    }
    // A global effect and a rewound session's sub-agent run in workflows of their own: the call finds them there.
    const works = status.kind === 'awaiting' || childOf(state, call)?.background !== undefined;
    const elsewhere = call.scope === 'global' || (origin.kind === 'rewind' && works);
    const lost = !elsewhere && (isOpen(call) || call.dispatches.at(-1)?.outcome === null);
    if (since !== undefined || (lost && after?.ended[call.id] !== 'absent')) {
      close(call, 'unknown');
      const reason = `open at the checkpoint that this session's ${origin.kind} starts from`;
      // The forked session may still execute the call. An abandoned run does not, once the call has settled.
      call.status = { kind: origin.kind === 'rewind' ? 'settling' : 'unknown', reason };
      return;
    }
    if (lost) {
      close(call, 'absent');
      call.status = { kind: 'ready' };
      return;
    }
  }
  close(call, stopped(call));
  // A fork has its own keys, and another context may need another key or an approval: prepare the call again.
  // A person's decision stands.
  if (isChecked && (origin.kind === 'fork' || !edited)) call.status = { kind: 'preparing' };
  else if (kind !== 'approval' && kind !== 'preparing') call.status = { kind: 'ready' };
}

/** Restarts the expiry of an approval: its time may have run out since the checkpoint. */
function askAnew(state: SessionState, { name, status }: ToolCall, moment: Moment): void {
  const { expiresAt } = expiryFrom(state.manifest?.tools[name], iso(moment));
  if (status.kind === 'approval' && status.expiresAt !== null) status.expiresAt = expiresAt;
  if (status.kind === 'preparing' && status.before) status.before.expiresAt &&= expiresAt;
}

function close(call: ToolCall, outcome: 'absent' | 'unknown'): void {
  const dispatch = call.dispatches.at(-1);
  if (dispatch?.outcome === null) dispatch.outcome = outcome;
}
