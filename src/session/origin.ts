/** Starting from a checkpoint: what of the past a fork or a rewound session takes over, and as what. */
import { isFinal, type ToolCall } from '../contract/calls.ts';
import type { Loaded } from '../contract/loaded.ts';
import type { Origin } from '../contract/origin.ts';
import type { SessionState } from '../contract/state.ts';
import { applyEdit, editProblem } from './edit.ts';
import type { Moment } from './events.ts';
import { batchCalls, endCall, iso, note } from './state.ts';

/** Reads what was loaded. @returns `null` when it is not a state that this version knows. */
export function readLoaded(text: string): Loaded | null {
  try {
    const loaded = JSON.parse(text) as Loaded;
    return (loaded.state.schema as number) === 1 ? loaded : null;
  } catch {
    return null;
  }
}

/** Plants a checkpoint's state into a session that has done nothing yet. Its own first message stays queued. */
export function plant(state: SessionState, origin: Origin, loaded: Loaded, moment: Moment): void {
  const { state: past, after } = loaded;
  const edits = state.loading?.edits ?? null;
  state.loading = null;
  state.manifest = past.manifest;
  state.searchAttributes = past.searchAttributes;
  state.agent = past.agent;
  state.tenant ??= past.tenant;
  state.mode = past.mode;
  state.turn = past.turn;
  state.transcript = past.transcript;
  state.position = past.position;
  state.promptBytes = past.promptBytes;
  state.measured = past.measured;
  state.inbox = [...past.inbox, ...state.inbox];
  state.calls = past.calls;
  state.batch = past.batch;
  state.plan = past.plan;
  state.scratchpadRoot ??= past.scratchpadRoot;
  state.loop = past.loop;
  state.budget.limits = { ...past.budget.limits, ...state.budget.limits };
  state.notices = past.notices;
  if (origin.kind === 'rewind') {
    state.namespace = past.namespace;
    state.createdAt = past.createdAt;
    state.pauses = past.pauses.map((pause) => ({ ...pause, resumedAt: pause.resumedAt ?? iso(moment) }));
    // Money that was spent after the checkpoint is spent.
    if (after !== null) state.budget.spent = after.spent;
    const known = new Set(past.carried.map(({ idempotencyKey }) => idempotencyKey));
    state.carried = [...past.carried, ...(after?.effects ?? []).filter((e) => !known.has(e.idempotencyKey))];
  }
  for (const call of batchCalls(state)) if (!isFinal(call)) reopen(call, origin, loaded, moment);
  note(
    state,
    moment,
    origin.kind,
    `${origin.by}: ${origin.kind} of ${origin.sessionId} at ${origin.runId}:${origin.eventId}: ${origin.reason}`,
  );
  if (edits === null) return;
  const problem = editProblem(state, edits);
  if (problem === null) applyEdit(state, edits, moment);
  else note(state, moment, 'edit_refused', problem.message);
}

/** A call that was open at the checkpoint. Whoever had it then has it no more. */
function reopen(call: ToolCall, origin: Origin, { after }: Loaded, moment: Moment): void {
  const { kind } = call.status;
  const dispatched =
    call.dispatches.at(-1)?.outcome === null ||
    kind === 'settling' ||
    kind === 'verifying' ||
    kind === 'unknown';
  if (dispatched && call.effect === 'mutate') {
    const effect = after?.effects.find(({ callId }) => callId === call.id);
    if (effect !== undefined) {
      endCall(call, { kind: 'completed' }, { content: effect.output, isError: false }, iso(moment));
    } else if (after?.ended[call.id] === 'absent') {
      close(call, 'absent');
      call.status = { kind: 'ready' };
    } else {
      close(call, 'unknown');
      call.status = {
        kind: 'unknown',
        reason: `open at the checkpoint that this session's ${origin.kind} starts from`,
      };
    }
    return;
  }
  close(call, 'absent');
  // A fork's keys are its own, so they are derived anew; what a person has decided stays decided.
  if (origin.kind === 'fork') call.status = { kind: 'preparing' };
  else if (kind !== 'approval') call.status = { kind: 'ready' };
}

function close(call: ToolCall, outcome: 'absent' | 'unknown'): void {
  const dispatch = call.dispatches.at(-1);
  if (dispatch?.outcome === null) dispatch.outcome = outcome;
}
