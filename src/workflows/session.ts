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

/** Which transcript the worker was given, and up to which position. */
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
 * This workflow decides nothing. It collects the inputs of one activation, puts them in the order in which the fold
 * finds them in the history, lets {@link advance} apply them, and carries out the commands that it returns.
 */
export async function agentSession(rawInput: SessionInput): Promise<SessionResult> {
  const {
    workflowId: sessionId,
    runId,
    firstExecutionRunId: firstRunId,
    continuedFromExecutionRunId,
  } = workflowInfo();
  // This plain error fails the task, not the session: the session waits for a worker of the newer version.
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
    // One microtask later, so that the session steps once, when all inputs of the activation are here. One promise for
    // all inputs: the SDK records a stack for each promise, which is most of the cost of a flood of signals.
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
  // Temporal's cancellation is an input like any other. It must not cancel what is in flight.
  await CancellationScope.nonCancellable(async () => {
    const runner = new CommandRunner(CancellationScope.current(), (seq, outcome) =>
      inbox.push({ input: { type: 'outcome', seq, outcome } }),
    );
    // The session's steps run within the condition, which the SDK evaluates when all inputs of an activation are here.
    // To wake this function instead would take one more call into the sandbox, a good part of an activation's cost.
    await condition(() => {
      if (awake || inbox.length > 0) {
        awake = false;
        step(runner);
      }
      // Inputs that come after the last step are still applied. The state takes them along, and nothing is issued.
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
 * Continues in a new run. The server refuses a run with a search attribute that it no longer knows. So of Perdure's own
 * attributes, only those that the state lists are passed on.
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

/**
 * Why a session cannot have its id, or `null`. Any Temporal client may start a session. If it has an effect's id, it
 * must be that effect.
 */
function idProblem(sessionId: string, { effect }: SessionInput): string | null {
  if (effect === undefined) return reservedProblem(sessionId);
  return sessionId === effectId(effect.idempotencyKey) &&
    effect.argsDigest === argsDigest(effect.tool, effect.args)
    ? null
    : `${sessionId} is not the effect of key ${effect.idempotencyKey} with these arguments`;
}

/**
 * The order in which the fold finds inputs in the history: signals and updates as they came, then outcomes by the
 * number of their command.
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
 * A failed query costs nothing: the SDK evicts the workflow from the cache, and the task brings the events again.
 */
function aheadOfTask(last: Moment, now: Moment): boolean {
  return (
    now.historyBytes > 0 &&
    now.historyBytes === last.historyBytes &&
    now.now === last.now &&
    now.historyEvents > last.historyEvents
  );
}

/** The moment at which the workflow task started: the same in all activations of the task, and in a replay. */
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

/** In a replay the worker is told nothing: that would double the replay's cost, and nobody needs it then. */
function isReplaying(): boolean {
  return workflowInfo().unsafe.isReplaying;
}

function isContinuing({ continuing }: SessionState): boolean {
  return continuing === 'now';
}

/** Hands the worker what is new in the transcript. After a replay, that is the run's whole transcript. */
function remember({ transcript, position, past }: SessionState, remembered: Remembered): void {
  if (isReplaying()) return;
  // An edited or loaded transcript is a new array: the worker's copy is of no use.
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

/**
 * Adds a mark to a mutation, by which the worker recognises its own call. A replay issues nothing, so it needs no mark.
 */
function marked(command: ToolCommand): ToolCommand {
  if (isReplaying()) return command;
  const mark = workflowInfo().unsafe.now();
  worker.issued({ activityId: String(command.seq), mark });
  return { ...command, input: { ...command.input, issueMark: mark } };
}

/** Hands the worker what leaves the run. An activity on another worker, or a second attempt, reads the history. */
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

/** The search attributes that a sub-agent was started with. Other sessions write theirs in each run. */
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
 * Writes the search attributes that have changed, if the state lists them: the server fails a task with an unknown one.
 * The worker checks the written attributes, and signals the session when the server no longer knows one. Returns how
 * many commands were issued.
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
