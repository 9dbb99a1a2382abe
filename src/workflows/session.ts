/** The agent session: a thin shell that feeds the pure core and carries out its commands. */

import { defineSearchAttributeKey, type SearchAttributePair } from '@temporalio/common';
import {
  ApplicationFailure,
  allHandlersFinished,
  CancellationScope,
  CancelledFailure,
  condition,
  makeContinueAsNewFunc,
  proxySinks,
  setCurrentDetails,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { ToolInput } from '../contract/activities.ts';
import { attributesOf } from '../contract/context.ts';
import { ASK_AGAIN } from '../contract/failure.ts';
import { parseInput } from '../contract/inputs.ts';
import { argsDigest, EMPTY_DIGEST } from '../contract/keys.ts';
import type { Message, Position } from '../contract/messages.ts';
import { SEARCH_ATTRIBUTE } from '../contract/names.ts';
import type { NextStep } from '../contract/next-step.ts';
import { leavingOf } from '../contract/piece.ts';
import { type SessionInput, type SessionResult, sessionInputSchema } from '../contract/session-input.ts';
import { needsPerson, type Phase, type SessionState } from '../contract/state.ts';
import { effectId, reservedProblem } from '../contract/workflow-ids.ts';
import { advance } from '../session/advance.ts';
import { commandsFor } from '../session/commands.ts';
import type { Command, Input, Moment } from '../session/events.ts';
import { initialState } from '../session/initial.ts';
import { newerProblem } from '../session/past.ts';
import type { Refusal } from '../session/refusal.ts';
import { phaseOf } from '../session/state.ts';
import { TelemetryTracker } from '../session/telemetry.ts';
import { budgetView, pendingCalls } from '../session/views.ts';
import { CommandRunner } from './commands.ts';
import { registerHandlers } from './handlers.ts';
import { QueriedTask } from './queried-task.ts';
import type { PerdureSinks } from './sinks.ts';
import { newsLogger } from './worker-log.ts';

const { perdure: worker } = proxySinks<PerdureSinks>();

/** How much of which transcript the worker has been given. */
interface Remembered {
  of: readonly Message[];
  position: Position;
}

const NOTHING: Position = { count: 0, digest: EMPTY_DIGEST };

type ToolCommand = Extract<Command, { input: ToolInput }>;
type StorePastCommand = Extract<Command, { kind: 'storePast' }>;

interface Entry {
  input: Input;
  applied?: (refusal: Refusal | null) => void;
}

/**
 * One agent session. It ends when a task is done or when it is cancelled; a chat waits for its next message.
 *
 * Nothing here decides anything: inputs are collected for one activation, put in the order in which the fold
 * finds them in the history, applied by {@link advance}, and its commands are carried out.
 */
export async function agentSession(rawInput: SessionInput): Promise<SessionResult> {
  const {
    workflowId: sessionId,
    runId,
    firstExecutionRunId: firstRunId,
    continuedFromExecutionRunId,
  } = workflowInfo();
  // An error of another class fails the task, not the session: it waits for a worker of that version.
  const newer = continuedFromExecutionRunId === undefined ? null : newerProblem(rawInput);
  if (newer !== null) throw new Error(newer);
  const parsed = parseInput(sessionInputSchema, rawInput);
  if (!parsed.ok) throw ApplicationFailure.nonRetryable(parsed.message, 'INVALID_ARGUMENT');
  const misplaced = idProblem(sessionId, parsed.value);
  if (misplaced !== null) throw ApplicationFailure.nonRetryable(misplaced, 'INVALID_ARGUMENT');
  if (parsed.value.carried !== undefined && continuedFromExecutionRunId === undefined) {
    const message = 'carried: only a session that goes on in a new run may have it: leave it out';
    throw ApplicationFailure.nonRetryable(message, 'INVALID_ARGUMENT');
  }
  let task = clock();
  const state = initialState({ sessionId, runId, firstRunId }, parsed.value, task);

  const inbox: Entry[] = [];
  const arriving: Entry[] = [];
  const push = (entry: Entry): void => {
    // One microtask later, so that the loop wakes once, when all inputs of the activation are here. One promise for
    // all of them: the SDK records a stack for each promise, which is most of the cost of a flood of signals.
    if (arriving.push(entry) === 1) void Promise.resolve().then(() => inbox.push(...arriving.splice(0)));
  };
  registerHandlers(state, (input) => new Promise((applied) => push({ input, applied })), push);
  void watchCancellation(push);

  const queried = new QueriedTask();
  const remembered: Remembered = { of: state.transcript, position: state.past?.sealed ?? NOTHING };
  const telemetry = new TelemetryTracker(state, task.now);
  const shown: Shown = { values: givenAttributes(parsed.value), tell: newsLogger() };
  let result: SessionResult | null = null;
  let awake = false;
  void Promise.resolve().then(() => {
    awake = true;
  });
  const step = (runner: CommandRunner): void => {
    const now = clock();
    const entries = inbox.splice(0).sort(byHistoryOrder);
    if (aheadOfTask(task, now) || queried.mayBeLost(now, entries)) throw new Error(ASK_AGAIN);
    task = now;
    const inputs = entries.map(({ input }) => input);
    const { commands, refusals } = advance(state, inputs, now);
    for (const command of commands) {
      if (command.kind === 'close') {
        result = command.result;
        worker.forget();
      } else if (command.kind !== 'continue') perform(command, state, runner, remembered);
    }
    const events = telemetry.observe(state, inputs, now.now);
    if (events.length > 0 && !isReplaying()) worker.happened({ agent: state.agent, events });
    for (const [i, { applied }] of entries.entries()) applied?.(refusals[i] ?? null);
    queried.note(now, commands, showStatus(state, shown));
  };
  // Temporal's cancellation is an input like any other; it must not tear down what is in flight.
  await CancellationScope.nonCancellable(async () => {
    const runner = new CommandRunner(CancellationScope.current(), (seq, outcome) =>
      inbox.push({ input: { type: 'outcome', seq, outcome } }),
    );
    // The session's steps run within the condition, which the SDK evaluates when all inputs of an activation are here.
    // Waking this function instead would be one more call into the sandbox, a good part of an activation's cost.
    await condition(() => {
      if (awake || inbox.length > 0) {
        awake = false;
        step(runner);
      }
      // What comes after the last step goes along: it is applied, and nothing is issued.
      return result !== null || (isContinuing(state) && inbox.length + arriving.length === 0);
    });
    await condition(allHandlersFinished);
  });
  if (isContinuing(state)) {
    return goOn(state);
  }
  if (state.status.kind === 'cancelled' && state.status.by === 'temporal') {
    throw new CancelledFailure('The session was cancelled by a Temporal client');
  }
  return result as unknown as SessionResult;
}

/**
 * Goes on in a new run. The server refuses a run with a search attribute that it does not know any more, so the attributes
 * are passed without those of ours that the state does not list.
 */
function goOn(state: SessionState): Promise<never> {
  const ours: readonly string[] = Object.values(SEARCH_ATTRIBUTE);
  const typedSearchAttributes = workflowInfo()
    .typedSearchAttributes.getAll()
    .filter(({ key: { name } }) => !ours.includes(name) || state.searchAttributes.includes(name));
  worker.writes(typedSearchAttributes.map(({ key }) => key.name).filter((name) => ours.includes(name)));
  const next = makeContinueAsNewFunc<typeof agentSession>({ typedSearchAttributes });
  return next({ agent: state.agent, carried: state });
}

/** Any Temporal client may start a session. A session with the id of an effect must be that effect. */
function idProblem(sessionId: string, { effect }: SessionInput): string | null {
  if (effect === undefined) return reservedProblem(sessionId);
  return sessionId === effectId(effect.idempotencyKey) &&
    effect.argsDigest === argsDigest(effect.tool, effect.args)
    ? null
    : `${sessionId} is not the effect of key ${effect.idempotencyKey} with these arguments`;
}

/**
 * The order in which the fold finds inputs in the history: signals and updates as they came, then outcomes by
 * their command.
 */
function byHistoryOrder(a: Entry, b: Entry): number {
  return outcomeOrder(a.input) - outcomeOrder(b.input);
}

function outcomeOrder(input: Input): number {
  if (input.type === 'outcome') return input.seq;
  // Temporal's own cancellation arrives with the outcomes, and the fold places it first among them.
  return input.type === 'cancel' && input.value.by === 'temporal' ? 0 : -1;
}

async function watchCancellation(push: (entry: Entry) => void): Promise<void> {
  try {
    await CancellationScope.current().cancelRequested;
  } catch {
    push({
      input: { type: 'cancel', value: { by: 'temporal', reason: 'cancelled by a Temporal client' } },
    });
  }
}

/**
 * Whether events came ahead of their workflow task. A query without a workflow task carries the whole history so far.
 * The SDK applies the events after the last task at that task's time, but a later replay applies them at another time.
 * A failed query costs nothing: the workflow is evicted from the cache, and the task brings the events again.
 */
function aheadOfTask(last: Moment, now: Moment): boolean {
  return (
    now.historyBytes > 0 &&
    now.historyBytes === last.historyBytes &&
    now.now === last.now &&
    now.historyEvents > last.historyEvents
  );
}

/** The start of the workflow task: equal for all activations of the task, and in a replay. */
function clock(): Moment {
  const { historyLength, historySize } = workflowInfo();
  return { now: Date.now(), historyEvents: historyLength, historyBytes: historySize };
}

function perform(
  command: Exclude<Command, { kind: 'close' } | { kind: 'continue' }>,
  state: SessionState,
  runner: CommandRunner,
  remembered: Remembered,
): void {
  if (command.kind === 'cancel') {
    runner.stop(command.seq);
    return;
  }
  const { kind } = command;
  if (kind === 'model' || kind === 'reads' || kind === 'storePast' || kind === 'aside')
    remember(state, remembered);
  if (command.kind === 'storePast') runner.start(handedOver(command, state));
  else runner.start(command.kind === 'tool' && command.input.effect === 'mutate' ? marked(command) : command);
}

/** What the worker is told costs a replay as much as the replay itself, and nobody needs it then. */
function isReplaying(): boolean {
  return workflowInfo().unsafe.isReplaying;
}

function isContinuing({ continuing }: SessionState): boolean {
  return continuing === 'now';
}

/** Hands the worker what is new in the transcript. After a replay that is the whole of the run's. */
function remember({ transcript, position, past }: SessionState, remembered: Remembered): void {
  if (isReplaying()) return;
  // An edited or loaded transcript is a new one: the worker's copy is of no use.
  const start = past?.sealed ?? NOTHING;
  const from = remembered.of === transcript ? remembered.position : start;
  const before = past?.messages ?? 0;
  worker.remember({
    from,
    to: position,
    messages: transcript.slice(from.count - before, position.count - before),
  });
  remembered.of = transcript;
  remembered.position = position;
}

/** A mutation with a mark by which the worker recognises its own call. A replay issues nothing, so its mark is dropped. */
function marked(command: ToolCommand): ToolCommand {
  if (isReplaying()) return command;
  const mark = workflowInfo().unsafe.now();
  worker.issued({ activityId: String(command.seq), mark });
  return { ...command, input: { ...command.input, issueMark: mark } };
}

/** Hands the worker what leaves the run. An activity that runs elsewhere, or again, reads it from the history. */
function handedOver(command: StorePastCommand, state: SessionState): StorePastCommand {
  if (isReplaying()) return command;
  const mark = workflowInfo().unsafe.now();
  const newest = state.past?.newest;
  worker.leaves({ mark, ...(newest !== undefined && { newest }), leaving: leavingOf(state) });
  return { ...command, input: { ...command.input, mark } };
}

/** The session's current details in Temporal's UI. They cost no history. */
function details(state: SessionState, phase: Phase): string {
  const { spent, unpriced } = budgetView(state);
  const cost = unpriced.length > 0 && spent.usd === 0 ? 'no known cost' : `$${spent.usd.toFixed(4)}`;
  const { wait, limited } = state;
  const lines = [
    `**${state.agent}** is **${phase}** after ${state.turn} turns, ${(state.past?.calls ?? 0) + state.calls.length} tool calls and ${cost}.`,
    ...(wait === null ? [] : [`Waits: ${wait.reason}: ${wait.message}`, nextLine(wait.next)]),
    ...(limited === undefined ? [] : [`Waits: ${limited.message}.`]),
    ...pendingCalls(state).map(
      ({ callId, tool, status, next }) => `${tool} ${callId}: ${status.kind}. ${nextLine(next)}`,
    ),
  ];
  return lines.join('\n\n').slice(0, 4_000);
}

function nextLine(next: NextStep): string {
  return `Next: ${commandsFor(next)
    .map((line) => `\`${line}\``)
    .join(' or ')}`;
}

/** The search attributes that a sub-agent is started with. Other sessions write theirs in each run. */
function givenAttributes({ described }: SessionInput): Map<string, string> {
  const given = described === undefined ? [] : workflowInfo().typedSearchAttributes.getAll();
  return new Map(given.map(({ key, value }) => [key.name, String(value)]));
}

interface Shown {
  /** The search attributes as last written. */
  values: Map<string, string>;
  tell: (state: SessionState) => void;
}

/**
 * Writes the search attributes that have changed. Only those that the state lists: the server fails a task with an unknown
 * one. The worker checks them, and sends a signal when one is unknown by now. Returns how many commands that took.
 */
function showStatus(state: SessionState, { values, tell }: Shown): number {
  const phase = phaseOf(state);
  setCurrentDetails(details(state, phase));
  tell(state);
  if (state.manifest === null) return 0;
  const status = phase === 'closed' ? state.status.kind : needsPerson(phase) ? phase : 'active';
  const pairs: SearchAttributePair[] = [];
  for (const [name, value] of attributesOf(state, status)) {
    if (!state.searchAttributes.includes(name)) values.delete(name);
    else if (values.get(name) !== value) {
      values.set(name, value);
      pairs.push({ key: defineSearchAttributeKey(name, 'KEYWORD'), value });
    }
  }
  if (pairs.length === 0) return 0;
  upsertSearchAttributes(pairs);
  if (!isReplaying()) worker.writes(pairs.map(({ key }) => key.name));
  return 1;
}
