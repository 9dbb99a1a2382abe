/** The signals, updates and queries of a session. */
import {
  condition,
  defineQuery,
  defineSignal,
  defineUpdate,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { jsonSize } from '../contract/json.ts';
import { LIMIT } from '../contract/limits.ts';
import { QUERY, SIGNAL, UPDATE } from '../contract/names.ts';
import type { SessionState } from '../contract/state.ts';
import { unknownInput } from '../contract/unknown-name.ts';
import type { PageInput, TooLarge } from '../contract/views.ts';
import type { PersonInput } from '../session/events.ts';
import { headroomProblem } from '../session/headroom.ts';
import { pinProblem } from '../session/pins.ts';
import { withdrawnProblem } from '../session/queue.ts';
import { readInput, readSignal } from '../session/read-input.ts';
import { wantsReply } from '../session/reads.ts';
import type { Refusal } from '../session/refusal.ts';
import { refusalOf } from '../session/refusals.ts';
import { contradicts } from '../session/said.ts';
import { findCall, hasMessage, messageBlocks, phaseOf } from '../session/state.ts';
import { budgetView, callsPage, messagesPage, pendingCalls, sessionView } from '../session/views.ts';
import { failure } from './failure.ts';
import { acceptUnreadableSignals } from './sdk-internals.ts';

type Apply = (input: PersonInput) => Promise<Refusal | null>;

const DESCRIPTION: Record<string, string> = {
  [SIGNAL.send]:
    'A message to the agent: {text, id?, mode?: queue|interrupt|aside, pin?, by?} or a bare string',
  [SIGNAL.pause]: 'Start no new call: {by?, reason?, now?}; now also cancels calls in flight',
  [SIGNAL.resume]: 'Continue after a pause or a wait: {by?}',
  [SIGNAL.cancel]: 'End the session once a mutation in flight has settled: {by?, reason?}',
  [SIGNAL.awaitEffect]: 'To a global effect: tell this call when there is an outcome: {sessionId, callId}',
  [SIGNAL.effectDone]: 'Look at the global effect that a call waits for: {callId}',
  [SIGNAL.searchAttributes]: 'From a worker: the search attributes that the server still knows: {known}',
  [SIGNAL.poolChanged]: 'From a pool of money: ask it again: {pool}',
  [SIGNAL.childDone]: 'From a sub-agent: how it has ended: {child, end: {status, output, usage?}}',
  [SIGNAL.rateTurn]: 'From the limiter of a provider: it is the turn of this session',
  [UPDATE.send]: 'A message to the agent, answered when it is queued: {text, blocks?, id?, mode?, pin?, by?}',
  [UPDATE.decide]:
    'Decide on a call: {callId, argsDigest, by?, verified?, decision: {decision: approve|edit|reject|respond, …}}',
  [UPDATE.resolve]:
    'Say what became of a call: {callId, argsDigest, dispatchNo, by?, verified?, resolution: {outcome: landed|absent|failed, …}}',
  [UPDATE.edit]: 'Edit a session between turns: {transcript?: {from, messages}, plan?, by?, reason?}',
  [UPDATE.withdraw]: 'Take back a queued message: {id, by?}',
  [UPDATE.editMessage]: 'Change a queued message: {id, text, blocks?, by?}',
  [UPDATE.seal]: 'Start no new call before a rewind: {by?, reason?}; resume undoes it',
  [UPDATE.budget]: 'Set the caps, or let the session finish: {limits?, finish?, by?}',
};

/** Registers all handlers, in the order that `HANDLER_ORDER` tells the fold. */
export function registerHandlers(
  state: SessionState,
  apply: Apply,
  push: (entry: { input: PersonInput }) => void,
): void {
  acceptUnreadableSignals();
  // How many updates were accepted, also in a replay.
  let taken = 0;
  for (const name of Object.values(SIGNAL)) {
    setHandler(
      defineSignal<[unknown]>(name),
      (payload: unknown) => push({ input: readSignal(name, payload) }),
      { description: DESCRIPTION[name] ?? '' },
    );
  }
  for (const name of Object.values(UPDATE)) {
    setHandler(
      defineUpdate<unknown, [unknown]>(name),
      async (payload: unknown) => {
        taken += 1;
        const input = acceptable(name, payload);
        const refusal = await apply(input);
        if (refusal !== null) throw failure(refusal);
        return answer(state, input);
      },
      {
        validator: (payload: unknown) => {
          // The limit holds only in the validator: an update on record may be larger.
          const input = acceptable(name, payload, LIMIT.update);
          const refusal =
            misnamed(name, payload) ??
            refusalOf(state, input) ??
            leftBehind(state, input) ??
            contradicted(state, input) ??
            (input.type === 'send' ? pinProblem(state, input.value) : null) ??
            fullFor(state, name, input, taken);
          if (refusal !== null) throw failure(refusal);
        },
        description: DESCRIPTION[name] ?? '',
      },
    );
  }
  const query = (
    name: string,
    answerQuery: (input: PageInput | undefined) => unknown,
    description: string,
  ): void =>
    setHandler(
      defineQuery<unknown, [PageInput | undefined]>(name),
      (page: PageInput | undefined) => fitting(answerQuery(page)),
      { description },
    );
  query(QUERY.wantsReply, () => wantsReply(state), 'Whether the model is asked when its reads have ended');
  query(QUERY.state, () => sessionView(state), 'The session at a glance');
  query(QUERY.snapshot, () => state, 'The whole state, as in a checkpoint');
  query(QUERY.transcript, (page) => messagesPage(state, page), 'Messages: {before?, limit?}');
  query(QUERY.queue, () => state.inbox, 'Messages that wait for the end of the turn');
  query(QUERY.calls, (page) => callsPage(state, page), 'The tool-call log: {before?, limit?}');
  query(QUERY.approvals, () => pendingCalls(state), 'Calls that wait for a person');
  query(QUERY.budget, () => budgetView(state), 'Caps, spent and reserved');
  query(QUERY.plan, () => state.plan, 'The plan');
}

/** For validators only: they leave no trace and do not run in a replay, so this cannot change updates on record. */
function misnamed(name: string, payload: unknown): Refusal | null {
  const unknown = unknownInput(name, payload);
  return unknown && { code: 'INVALID_ARGUMENT', message: unknown.message, details: { field: unknown.field } };
}

/** For validators only. The session takes an id once, so another text under the same id would be lost. */
function contradicted(state: SessionState, input: PersonInput): Refusal | null {
  if (input.type !== 'send' || input.value.id === undefined) return null;
  const { id } = input.value;
  const withdrawn = withdrawnProblem(state, id);
  if (withdrawn !== null) return withdrawn;
  if (!contradicts(state, id, messageBlocks(input.value))) return null;
  const message = `the session has a message ${id} with another text or other files: use a new id`;
  return { code: 'CONFLICT', message, details: { field: 'id', id } };
}

/** For validators only. A session that is sealed, finishing or leaving its run would accept an input and lose it. */
function leftBehind(state: SessionState, input: PersonInput): Refusal | null {
  const { sessionId, sealed, finishing, continuing } = state;
  if (sealed !== null && input.type !== 'seal') {
    const message =
      `session ${sessionId} is being rewound by ${sealed.by}. Try again when it continues, ` +
      'or resume it to stop the rewind';
    return { code: 'SESSION_BUSY', message, details: { sealed, next: { action: 'resume', sessionId } } };
  }
  if (continuing === 'now') {
    const message = `session ${sessionId} goes on in a new run at this moment: send it again`;
    return { code: 'SESSION_BUSY', message, details: { continuing: true } };
  }
  if (finishing && input.type === 'send') {
    const message = `session ${sessionId} is finishing with a summary. Start a new one`;
    return { code: 'SESSION_CLOSED', message, details: { phase: phaseOf(state) } };
  }
  return null;
}

/** For validators only. Refuses input for which the history has no room. */
function fullFor(state: SessionState, name: string, input: PersonInput, updates: number): Refusal | null {
  // A repeated message is answered even when the history is full.
  const isRepeat = input.type === 'send' && input.value.id !== undefined && hasMessage(state, input.value.id);
  const { historyLength, historySize } = workflowInfo();
  const history = { events: historyLength, bytes: historySize, updates };
  return headroomProblem(state.sessionId, name, history, isRepeat);
}

function acceptable(name: string, payload: unknown, limit?: number): PersonInput {
  const read = readInput(name, payload, limit);
  if (!read.ok) throw failure({ code: 'INVALID_ARGUMENT', ...read });
  return read.input;
}

/** What an update returns. After an edit of a call, it waits until the tool's schema has checked the arguments. */
async function answer(state: SessionState, input: PersonInput): Promise<unknown> {
  if (input.type === 'decide' || input.type === 'resolve') {
    const { callId } = input.value;
    // A run waits for its updates before it ends, so the update must not wait for the next run.
    await condition(() => findCall(state, callId)?.status.kind !== 'preparing' || state.continuing === 'now');
    const call = findCall(state, callId);
    if (call?.status.kind === 'approval' && call.status.problem !== undefined) {
      const message = `args of ${callId}: ${call.status.problem}`;
      throw failure({ code: 'INVALID_TOOL_INPUT', message, details: { field: 'args', callId } });
    }
    return { callId, status: call?.status.kind ?? null };
  }
  const told = { phase: phaseOf(state), queued: state.inbox.length };
  if (input.type !== 'edit') return told;
  // The history ends with the start of this task. Its completion is the next event, which names the checkpoint.
  const { runId, historyLength } = workflowInfo();
  return { ...told, checkpointId: `${runId}:${historyLength + 1}` };
}

/** Replaces a value that is too large. A failed query would reach the client without a code, so the answer says it. */
function fitting(value: unknown): unknown {
  const size = jsonSize(value);
  const tooLarge: TooLarge = { tooLarge: { size, limit: LIMIT.queryResult } };
  return size <= LIMIT.queryResult ? value : tooLarge;
}
