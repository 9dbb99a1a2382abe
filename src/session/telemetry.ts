/** Finds the events for traces and metrics in a session's steps. It only reads the state. */
import { dispatchNoOf, isFinal, type ToolCall } from '../contract/calls.ts';
import type { InFlight, SessionState } from '../contract/state.ts';
import { RATE_LIMITED, type SessionEvent, type WaitKind } from '../contract/telemetry.ts';
import { isMain } from '../contract/view.ts';
import type { Input, Outcome } from './events.ts';
import { batchCalls, findCall } from './state.ts';

type Charged = Pick<SessionState['budget']['spent'], 'inputTokens' | 'outputTokens' | 'nanoUsd'>;
type Wait = Omit<Extract<SessionEvent, { kind: 'wait' }>, 'kind' | 'end' | 'outcome'>;
type Flight = Pick<InFlight, 'kind' | 'callId'> & { start: number };
/** A turn whose calls have not all ended. */
type OpenTurn = Omit<Extract<SessionEvent, { kind: 'turn' }>, 'kind' | 'end' | 'calls'> & { replied: number };

/** The statuses of a lost call until its outcome is known or a person is asked. */
const RECOVERING: ReadonlySet<string> = new Set(['settling', 'verifying', 'backoff']);

/**
 * Follows one run of a session. A replay must feed it, too, and drop what it returns. If the run begins in the middle
 * of a turn, that turn is reported from its reply on.
 */
export class TelemetryTracker {
  #turn: number;
  #modelSince: number | null = null;
  #charged: Charged;
  #nanoUsd: number;
  #open: OpenTurn | null = null;
  #ended = false;
  readonly #waits = new Map<string, Wait>();
  readonly #flights = new Map<number, Flight>();
  readonly #lost = new Map<string, { turn: number; start: number }>();

  constructor(state: SessionState, now: number) {
    const { turn, batch, budget } = state;
    this.#turn = turn;
    this.#charged = { ...budget.spent };
    this.#nanoUsd = budget.spent.nanoUsd;
    if (batch.length === 0) return;
    const replied = repliedAt(state, now);
    this.#open = { turn, start: replied, replied, inputTokens: 0, outputTokens: 0, nanoUsd: 0 };
    this.#noteWaits(state, replied);
  }

  /** The events of a step, after its inputs have been applied. */
  observe(state: SessionState, inputs: readonly Input[], now: number): SessionEvent[] {
    const events: SessionEvent[] = [];
    for (const input of inputs) this.#noteLoss(state, input, now, events);
    this.#noteTurn(state, now, events);
    this.#noteWaits(state, now, events);
    this.#noteRecovered(state, now, events);
    const { nanoUsd } = state.budget.spent;
    if (nanoUsd > this.#nanoUsd) events.push({ kind: 'spent', nanoUsd: nanoUsd - this.#nanoUsd });
    this.#nanoUsd = nanoUsd;
    this.#noteFlights(state, now);
    if (state.status.kind !== 'active' && !this.#ended) {
      this.#ended = true;
      events.push({ kind: 'ended', status: state.status.kind });
    }
    return events;
  }

  #noteLoss(state: SessionState, input: Input, now: number, events: SessionEvent[]): void {
    if (input.type !== 'outcome' || input.outcome.kind === 'timer') return;
    const flight = this.#flights.get(input.seq);
    const message = lossOf(input.outcome);
    if (flight === undefined || message === null) return;
    const { kind: activity, callId, start } = flight;
    const call = callId === undefined ? undefined : findCall(state, callId);
    const turn = call?.turn ?? this.#turn + 1;
    events.push({
      kind: 'lost',
      turn,
      activity,
      start,
      end: now,
      message,
      ...(call === undefined ? {} : { callId: call.id, tool: call.name, dispatchNo: dispatchNoOf(call) }),
    });
    if (call !== undefined && !this.#lost.has(call.id)) this.#lost.set(call.id, { turn, start: now });
  }

  #noteTurn(state: SessionState, now: number, events: SessionEvent[]): void {
    const close = (): void => {
      if (this.#open === null) return;
      const { replied, ...turn } = this.#open;
      const calls = callsOf(state, turn.turn);
      if (turn.turn === state.turn && !calls.every(isFinal)) return;
      const ends = calls.map(({ completedAt }) => Date.parse(completedAt ?? ''));
      const end = Math.max(replied, ...ends.filter((at) => !Number.isNaN(at)));
      events.push({ kind: 'turn', ...turn, end, calls: calls.length });
      this.#open = null;
    };
    if (state.turn !== this.#turn) {
      // This reply came together with the reads of the turn before.
      close();
      const { inputTokens, outputTokens, nanoUsd } = state.budget.spent;
      this.#open = {
        turn: state.turn,
        start: this.#modelSince ?? now,
        replied: now,
        inputTokens: inputTokens - this.#charged.inputTokens,
        outputTokens: outputTokens - this.#charged.outputTokens,
        nanoUsd: nanoUsd - this.#charged.nanoUsd,
      };
      this.#charged = { inputTokens, outputTokens, nanoUsd };
      this.#turn = state.turn;
      this.#modelSince = null;
    }
    close();
    if (this.#modelSince === null && state.inFlight.some(({ kind }) => kind === 'model'))
      this.#modelSince = now;
  }

  #noteWaits(state: SessionState, now: number, events: SessionEvent[] = []): void {
    const waits = waitsOf(state, now);
    for (const [key, wait] of this.#waits) {
      if (waits.has(key)) continue;
      this.#waits.delete(key);
      events.push({ kind: 'wait', ...wait, end: now, outcome: waitOutcome(state, wait) });
    }
    for (const [key, wait] of waits) if (!this.#waits.has(key)) this.#waits.set(key, wait);
  }

  #noteRecovered(state: SessionState, now: number, events: SessionEvent[]): void {
    for (const [callId, { turn, start }] of this.#lost) {
      const kind = findCall(state, callId)?.status.kind ?? '';
      if (RECOVERING.has(kind)) continue;
      this.#lost.delete(callId);
      events.push({ kind: 'recovered', turn, start, end: now });
    }
  }

  #noteFlights({ inFlight }: SessionState, now: number): void {
    for (const seq of this.#flights.keys()) {
      if (!inFlight.some((flight) => flight.seq === seq)) this.#flights.delete(seq);
    }
    for (const { seq, kind, callId } of inFlight) {
      if (!this.#flights.has(seq))
        this.#flights.set(seq, { kind, start: now, ...(callId === undefined ? {} : { callId }) });
    }
  }
}

/**
 * How the worker of an activity was lost, or `null`. Temporal repeats a model call: the next attempt reports the loss.
 */
function lossOf(outcome: Exclude<Outcome, { kind: 'timer' }>): string | null {
  if (!outcome.result.ok) {
    const { kind, message } = outcome.result.failure;
    return kind === 'timeout' || kind === 'lost' ? message : null;
  }
  if (outcome.kind !== 'model' || outcome.result.value.kind !== 'failed') return null;
  const { failure, message } = outcome.result.value;
  return failure === 'worker_lost' ? message : null;
}

/** The calls of a turn. It searches from the end: the calls of the last turns are there. */
function callsOf({ calls }: SessionState, turn: number): ToolCall[] {
  const first = calls.findLastIndex((call) => call.turn < turn) + 1;
  return calls.slice(first).filter((call) => call.turn === turn);
}

function repliedAt({ transcript }: SessionState, now: number): number {
  const at = transcript.findLast((message) => message.role === 'assistant' && isMain(message))?.created_at;
  return at === undefined ? now : Date.parse(at);
}

/** What the session waits for, by a key that is unique for each wait. */
function waitsOf(state: SessionState, now: number): Map<string, Wait> {
  const waits = new Map<string, Wait>();
  const { wait, limited, paused, turn } = state;
  if (state.status.kind !== 'active') return waits;
  if (wait !== null)
    waits.set(`wait ${wait.since}`, {
      turn,
      on: 'waiting',
      start: Date.parse(wait.since),
      reason: wait.reason,
    });
  if (limited !== undefined) {
    const start = Date.parse(limited.since);
    waits.set(`limited ${limited.since}`, { turn, on: 'waiting', start, reason: RATE_LIMITED });
  }
  if (paused !== null) waits.set(`paused ${paused.at}`, { turn, on: 'paused', start: Date.parse(paused.at) });
  for (const call of batchCalls(state)) {
    const on = waitKind(call);
    if (on === null) continue;
    const { id: callId, name: tool } = call;
    waits.set(`${on} ${callId}`, { turn: call.turn, on, start: now, callId, tool });
  }
  return waits;
}

function waitKind({ status }: ToolCall): WaitKind | null {
  if (status.kind === 'approval') return 'approval';
  return status.kind === 'unknown' || status.kind === 'stuck' ? 'unknown_effect' : null;
}

function waitOutcome(state: SessionState, { on, callId, reason }: Wait): string {
  const call = callId === undefined ? undefined : findCall(state, callId);
  if (call === undefined && state.status.kind !== 'active') return state.status.kind;
  const isLeft = reason === RATE_LIMITED && (state.paused !== null || state.cancelling !== null);
  if (call === undefined) return isLeft ? 'left' : 'resumed';
  const answer = on === 'approval' ? call.decision?.decision : call.resolutions.at(-1)?.outcome;
  return answer ?? call.status.kind;
}
