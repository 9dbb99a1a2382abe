/** Edits of a session at rest. */
import type { EditInput } from '../contract/edit.ts';
import { canonicalJson, digestJson, type JsonObject } from '../contract/json.ts';
import { EMPTY_DIGEST } from '../contract/keys.ts';
import type { Message } from '../contract/messages.ts';
import { unsealedFrom } from '../contract/past.ts';
import type { PlanInput } from '../contract/plan.ts';
import type { InFlight, PlanStep, SessionState } from '../contract/state.ts';
import { addAuthor } from './approvers.ts';
import { unsee } from './compaction.ts';
import type { Moment } from './events.ts';
import { appendMessage, note, phaseOf } from './state.ts';

/** Timers of a session that waits: nothing of the turn is in flight. */
const BESIDE: readonly InFlight['kind'][] = ['reminder', 'child_recheck', 'pool_recheck', 'agent_recheck'];

/** The digest of everything that an edit can change. */
export function editBasis({ position, plan, scratchpadRoot }: SessionState): string {
  return digestJson({ digest: position.digest, plan, scratchpadRoot } as unknown as JsonObject);
}

/** Why an edit cannot be made now or as it is, or `null`. */
export function editProblem(
  state: SessionState,
  edit: EditInput,
): { busy: boolean; message: string; details: Readonly<Record<string, unknown>> } | null {
  const isBusy = state.inFlight.some(({ kind }) => !BESIDE.includes(kind));
  if (isBusy || state.batch.length > 0 || state.loading !== null) {
    return {
      busy: true,
      message: `session ${state.sessionId} is ${phaseOf(state)}: a turn is running. Pause the session, wait for the end of the turn, and edit again`,
      details: { phase: phaseOf(state) },
    };
  }
  if (edit.digest !== undefined && edit.digest !== state.position.digest) {
    return {
      busy: true,
      message: `the transcript has changed: its digest is ${state.position.digest}. Read it again`,
      details: { field: 'digest', digest: state.position.digest },
    };
  }
  const { transcript, basis } = edit;
  // Checked again when the edit is applied: of two edits of the same state, the first one wins.
  const present = basis === undefined ? basis : editBasis(state);
  if (basis !== present) {
    return {
      busy: true,
      message: 'the transcript, the plan or the scratchpad has changed. Read the session again',
      details: { field: 'basis', basis: present },
    };
  }
  if (transcript === undefined) return null;
  const base = state.past?.messages ?? 0;
  const messages = base + state.transcript.length;
  const first = state.past?.sealed.count ?? 0;
  if (transcript.from > messages || transcript.from < first) {
    const message =
      transcript.from < first
        ? `transcript.from is ${transcript.from}, and messages before ${first} belong to earlier runs: rewind the session to a checkpoint of one of them`
        : `transcript.from is ${transcript.from}, but there are only ${messages} messages`;
    return { busy: false, message, details: { field: 'transcript.from', messages } };
  }
  const kept = state.transcript.slice(unsealedFrom(state), transcript.from - base);
  const problem = transcriptProblem([...kept, ...transcript.messages]);
  if (problem === null) return null;
  return { busy: false, message: `transcript: ${problem}`, details: { field: 'transcript' } };
}

/** Makes an edit that has no problem. */
export function applyEdit(state: SessionState, edit: EditInput, moment: Moment): void {
  if (edit.transcript !== undefined) {
    const { from, messages: added } = edit.transcript;
    const sealed = unsealedFrom(state);
    const own = state.transcript.slice(sealed);
    const kept = own.splice(0, from - (state.past?.sealed.count ?? 0));
    for (const message of own.reverse()) unsee(state, message);
    const { promptBytes, pinnedBytes } = state;
    state.transcript = state.transcript.slice(0, sealed);
    state.position = { ...(state.past?.sealed ?? { count: 0, digest: EMPTY_DIGEST }) };
    for (const message of kept) appendMessage(state, message);
    state.promptBytes = promptBytes;
    if (pinnedBytes !== undefined) state.pinnedBytes = pinnedBytes;
    state.measured = null;
    delete state.compaction;
    // A summary may replace messages that the edit changes. The session makes another summary when it needs one.
    for (const message of added)
      if (message.summary === undefined) appendMessage(state, asSent(message, own));
  }
  if (edit.plan !== undefined) {
    const before = state.plan;
    state.plan = edit.plan.map((step) =>
      withEvidence(
        step,
        before.find(({ id }) => id === step.id),
      ),
    );
  }
  if (edit.scratchpadRoot !== undefined) state.scratchpadRoot = edit.scratchpadRoot;
  addAuthor(state, edit.by);
  const parts = Object.keys(edit).filter(
    (key) => key === 'transcript' || key === 'plan' || key === 'scratchpadRoot',
  );
  note(
    state,
    moment,
    'edit',
    `${edit.by ?? 'unknown'} edited ${parts.join(', ') || 'nothing'}: ${edit.reason ?? ''}`,
  );
}

/** A message as an edit may add it: only a message that was there before keeps the name of its sender. */
function asSent(message: Message, before: readonly Message[]): Message {
  const { by, ...unsigned } = message;
  const text = canonicalJson(message as unknown as JsonObject);
  const isOld = before.some((old) => canonicalJson(old as unknown as JsonObject) === text);
  return by === undefined || isOld ? message : unsigned;
}

/**
 * A person's plan needs no evidence. A step keeps its recorded evidence for postconditions whose text did not change.
 */
function withEvidence(step: PlanInput['steps'][number], before: PlanStep | undefined): PlanStep {
  const evidence = step.evidence.map((proof) => {
    const words = step.postconditions[proof.postcondition];
    const same = before?.evidence.find(
      ({ postcondition, tool }) => tool === proof.tool && before.postconditions[postcondition] === words,
    );
    return { ...proof, call_id: same?.call_id ?? '' };
  });
  return { ...step, evidence };
}

/** Why providers would refuse a transcript, or `null`: every tool call needs its result, and every result its call. */
function transcriptProblem(messages: readonly Message[]): string | null {
  const ids = new Set<string>();
  const open = new Set<string>();
  for (const [i, { id, role, blocks, aside }] of messages.entries()) {
    if (ids.has(id)) return `message ${i}: the id ${id} is used twice`;
    ids.add(id);
    if (aside === true) continue;
    if (role !== 'tool' && open.size > 0)
      return `message ${i}: tool call ${[...open].join(', ')} has no result before it`;
    for (const entry of blocks) {
      if (entry.kind === 'tool_call') {
        if (role !== 'assistant') return `message ${i}: a ${role} message has a tool call`;
        if (open.has(entry.id)) return `message ${i}: tool call ${entry.id} appears twice`;
        open.add(entry.id);
      } else if (entry.kind === 'tool_result') {
        if (role !== 'tool') return `message ${i}: a ${role} message has a tool result`;
        if (!open.delete(entry.call_id))
          return `message ${i}: the result of ${entry.call_id} has no call before it`;
      }
    }
  }
  return open.size > 0 ? `the tool calls ${[...open].join(', ')} have no result` : null;
}
