/** What must hold in every state and of every command, in words. */

import { isFinal } from '../../../src/contract/calls.ts';
import { messageKey } from '../../../src/contract/keys.ts';
import type { ReadCall } from '../../../src/contract/model-call.ts';
import { bytesOf, isMain, viewOf } from '../../../src/contract/view.ts';
import type { EffectRef, InFlight, SessionState, ToolCall } from '../../../src/index.ts';
import { usd } from '../../../src/session/budget.ts';
import type { Command } from '../../../src/session/events.ts';
import { batchCalls, openChildren, phaseOf } from '../../../src/session/state.ts';
import { isDelegated } from '../../../src/session/sub-agents.ts';
import { keyOf, plannedCall, type Scenario } from './scenario.ts';
import { answeredBefore, type World, wholeOf } from './world.ts';

/** A promise that was broken. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

/** Commands that run a tool. */
const WORK: readonly Command['kind'][] = ['reads', 'tool'];

function promise(holds: boolean, broken: string): asserts holds {
  if (!holds) throw new Violation(broken);
}

/** A sub-agent may report before the outcome of its start is here, or that it was told something: these say nothing new then. */
function isLate(state: SessionState): (flight: InFlight) => boolean {
  return ({ kind, callId }) => {
    if (kind === 'steer') return openChildren(state).length === 0;
    const call = state.calls.find(({ id }) => id === callId);
    return kind === 'attach' && call !== undefined && isFinal(call) && isDelegated(state, call);
  };
}

/** Holds a command against what is on record; a mutation's dispatch goes out into the world. */
export function checkCommand(
  scenario: Scenario,
  state: SessionState,
  world: World,
  command: Command,
  before: number,
): void {
  if (command.kind === 'close') {
    promise(state.inFlight.every(isLate(state)), 'the session closed while something was in flight');
    return;
  }
  if (command.kind === 'cancel') return;
  if (command.kind === 'continue') {
    promise(state.inFlight.length === 0, 'the run ends while something is in flight');
    return;
  }
  promise(
    state.sealed === null || state.cancelling !== null,
    `a ${command.kind} was issued by a session that is sealed`,
  );
  promise(command.seq === before + 1, `command ${command.seq} follows command ${before}`);
  const starts = command.kind === 'attach' && command.input.start !== undefined;
  if (command.kind === 'model' || command.kind === 'aside' || starts || WORK.includes(command.kind)) {
    promise(state.paused === null, `a ${command.kind} call was issued while the session is paused`);
    const undoes = command.kind === 'tool' && command.input.compensates !== undefined;
    promise(
      state.cancelling === null || undoes,
      `a ${command.kind} call was issued after the session was cancelled`,
    );
  }
  if (command.kind === 'model') {
    promise(
      state.inFlight.filter(({ kind }) => kind === 'model').length === 1,
      'two model calls are in flight at once',
    );
  }
  if (command.kind === 'aside') {
    promise(
      batchCalls(state).some((call) => !isFinal(call)),
      'a side answer was asked for while no call is open',
    );
    promise(
      state.inFlight.filter(({ kind }) => kind === 'aside').length === 1,
      'two side answers are in flight at once',
    );
  }
  const reads = readsOf(command);
  for (const { callId } of reads) {
    promise(
      scenario.tools[nameOf(state, callId)]?.effect === 'read',
      `${callId} runs as a read, and is none`,
    );
    checkOrder(scenario, state, callId);
  }
  if (command.kind === 'model') {
    const open = batchCalls(state).filter(
      (call) => !isFinal(call) && !reads.some(({ callId }) => callId === call.id),
    );
    promise(open.length === 0, 'the model is asked while calls are open that do not run before it');
    const said = state.inbox.filter(({ aside }) => aside !== true);
    promise(reads.length === 0 || said.length === 0, 'the model is asked before what was said to it');
  }
  if (command.kind !== 'tool' && !(command.kind === 'attach' && starts)) return;
  const { callId, tool, idempotencyKey: key } = command.input;
  if (command.kind === 'tool' && command.input.compensates !== undefined) {
    checkCompensation(state, world, callId, command.input.compensates);
    dispatched(state, world, command);
    return;
  }
  const args = command.kind === 'attach' ? (command.input.start?.args ?? null) : command.input.args;
  const base = keyOf(scenario, state.sessionId, tool, args, callId);
  promise(
    scenario.tools[tool]?.scope === 'message' ? messageKeys(state, base).includes(key) : key === base,
    `${callId} was dispatched under the key of other arguments, or of another session`,
  );
  promise(
    !world.doubted.includes(callId),
    `${callId} was open where this fork began, and was dispatched without a recorded absent`,
  );
  checkOrder(scenario, state, callId);
  if (plannedCall(scenario, callId)?.needsApproval === true) {
    // What was approved and is being checked again may turn out to have been lost, not new.
    const approved = world.approvals[callId] === 'granted' || world.approvals[callId] === 'checking';
    promise(approved, `${callId} was dispatched without the approval that it needs`);
    const people = scenario.tools[tool]?.approval?.people ?? 0;
    const given = new Set(world.approvers[callId]?.now);
    promise(
      people === 0 || given.size >= people,
      `${callId} was dispatched with ${given.size} of ${people} approvals`,
    );
  }
  if (command.kind === 'attach') {
    // It attaches to the effect that is there.
    world.effects[key] ??= 'running';
    return;
  }
  dispatched(state, world, command);
}

/** A compensation undoes what has landed, once it was approved, and the last effect first. */
function checkCompensation(state: SessionState, world: World, callId: string, effect: EffectRef): void {
  const { idempotencyKey: key } = effect;
  promise(world.approvals[callId] === 'granted', `${callId} was dispatched without an approval`);
  promise(world.landed[key] === 1, `${callId} undoes an effect that has not landed`);
  const { calls } = wholeOf(state, world);
  const own = calls.findIndex(({ idempotencyKey }) => idempotencyKey === key);
  for (const later of calls.slice(own + 1)) {
    if (later.compensates !== undefined || later.replayOf !== null || later.status.kind !== 'completed')
      continue;
    const tried = calls.find(({ compensates }) => compensates?.idempotencyKey === later.idempotencyKey);
    promise(
      tried !== undefined && isFinal(tried),
      `${callId} was dispatched before the effects after its own were undone`,
    );
  }
}

function dispatched(state: SessionState, world: World, command: Extract<Command, { kind: 'tool' }>): void {
  const { callId, idempotencyKey: key, effect, dispatchNo } = command.input;
  if (effect !== 'mutate') return;
  // The worker finds the record of an equal call that has left the run.
  if (answeredBefore(world, key) !== undefined && command.input.past !== undefined) return;
  const recorded = world.keys[key] ?? 'free';
  promise(
    recorded !== 'in flight',
    `two dispatches of one key are in flight at once: ${callId} is the second`,
  );
  promise(
    recorded !== 'in doubt',
    `${callId} was dispatched without a recorded absent of the dispatch before it`,
  );
  promise(recorded !== 'done', `${callId} was dispatched although its effect is on record`);
  promise(command.maxAttempts === 1, `the server may repeat ${callId} by itself`);
  const call = state.calls.find(({ id }) => id === callId);
  promise(call?.dispatches.length === dispatchNo, `dispatch ${dispatchNo} of ${callId} is not on record`);
  world.keys[key] = 'in flight';
  world.attempts.push({ runId: state.runId, seq: command.seq, callId, key, landed: false, lost: false });
}

/** The reads that a command runs. */
function readsOf(command: Command): readonly ReadCall[] {
  if (command.kind === 'reads') return command.input.reads;
  return command.kind === 'model' ? (command.input.first?.reads ?? []) : [];
}

function nameOf(state: SessionState, callId: string): string {
  return state.calls.find(({ id }) => id === callId)?.name ?? '';
}

/** In a batch only reads run beside each other, and sub-agents: all else waits for what was asked for before it. */
function checkOrder(scenario: Scenario, state: SessionState, callId: string): void {
  if (scenario.manifest?.toolOrder === 'parallel') return;
  const reads = (name: string): boolean =>
    scenario.tools[name]?.effect === 'read' || scenario.tools[name]?.agent !== undefined;
  const calls = batchCalls(state);
  const own = calls.findIndex(({ id }) => id === callId);
  for (const [i, other] of calls.entries()) {
    if (i === own || (reads(other.name) && reads(calls[own]?.name ?? ''))) continue;
    const inOrder = i < own ? isFinal(other) : other.dispatches.length === 0;
    promise(inOrder, `${callId} was dispatched out of its order with ${other.id}`);
  }
}

/** Holds a state against the world. `moves` tells whether anything can still happen by itself. */
export function checkState(scenario: Scenario, state: SessionState, world: World, moves: boolean): void {
  const whole = wholeOf(state, world);
  checkMessageScope(scenario, state, world);
  checkEffects(whole, world);
  checkTranscript(whole);
  checkBudget(state);
  // Until it is loaded, the past is elsewhere.
  if (state.loading === null) {
    checkMessages(whole, world);
    checkPauses(whole, world);
  }
  checkRest(state, world, moves);
  if (phaseOf(state) === 'closed') checkUndone(whole, world);
}

/** The keys that equal calls of scope `message` can have, one for each message that was taken. */
function messageKeys({ messagesTaken }: SessionState, base: string): string[] {
  return Array.from({ length: messagesTaken }, (_, i) => messageKey(base, i + 1));
}

/** A message gets at most one effect of equal calls, and a message that was left behind by a rewind gets no second one. */
function checkMessageScope(scenario: Scenario, state: SessionState, world: World): void {
  for (const { tool, args } of scenario.replies.flat()) {
    if (scenario.tools[tool]?.scope !== 'message') continue;
    const keys = messageKeys(state, keyOf(scenario, state.sessionId, tool, args, ''));
    const times = keys.reduce((sum, key) => sum + (world.landed[key] ?? 0), 0);
    const messages = Math.max(world.sent.length, world.mostSent);
    promise(times <= messages, `${times} equal effects have landed in answer to ${messages} messages`);
  }
}

function checkEffects(state: SessionState, world: World): void {
  for (const [key, times] of Object.entries(world.landed)) {
    const call = state.calls.find(({ idempotencyKey }) => idempotencyKey === key);
    const what = call === undefined ? key : `${call.name} ${JSON.stringify(call.args)}`;
    promise(times <= 1, `the effect of ${what} has landed ${times} times`);
  }
  for (const call of state.calls) {
    const effect = call.dispatches.length > 0 ? world.effects[call.idempotencyKey] : undefined;
    const open =
      effect === 'running' ||
      world.attempts.some(
        ({ callId, key, landed }) => callId === call.id && key === call.idempotencyKey && !landed,
      );
    const landed = effect === 'landed' || (world.landedByCall[`${call.id} ${call.idempotencyKey}`] ?? 0) > 0;
    // Without the settle assumption nobody can be certain of that.
    const nothing = world.landsForEver || (!landed && !open);
    // One in the background is held to what its message reports.
    if (call.status.kind === 'completed' && call.effect === 'mutate' && call.background !== true) {
      promise(
        (world.landed[call.idempotencyKey] ?? 0) === 1,
        `${call.id} is completed, but nothing has landed`,
      );
      promise(call.result?.isError === false, `${call.id} is completed with an error for a result`);
    }
    if (call.status.kind === 'failed' && call.status.certain) {
      promise(
        nothing,
        `${call.id} is certain to have failed, but its effect ${landed ? 'has landed' : 'may land'}`,
      );
    }
    if (call.status.kind === 'skipped') {
      // An interrupt ends the waiting for a global effect, and says so.
      const said = JSON.stringify(call.result?.content ?? '').includes('may still happen');
      promise(
        nothing || (effect !== undefined && said),
        `${call.id} is skipped, but its effect ${landed ? 'has landed' : 'may land'}`,
      );
    }
    if (isFinal(call)) {
      promise(call.result !== null && call.completedAt !== null, `${call.id} has ended without a result`);
      promise(
        !state.inFlight.some(
          ({ callId, kind }) =>
            callId === call.id &&
            (kind === 'tool' || kind === 'verify' || (kind === 'attach' && !isDelegated(state, call))),
        ),
        `${call.id} has ended, but it is in flight`,
      );
    }
  }
}

/** Each message of the model that asks for calls is followed at once by the results of exactly these. */
export function checkTranscript(state: SessionState): void {
  let asked: string[] = [];
  const main = state.transcript.filter(isMain);
  for (const { role, blocks } of main) {
    const results = blocks.flatMap((block) => (block.kind === 'tool_result' ? [block.call_id] : []));
    if (role === 'tool') {
      promise(results.join() === asked.join(), `results of ${results.join()} answer calls ${asked.join()}`);
      asked = [];
    } else {
      promise(asked.length === 0, `a message of the ${role} came before the results of ${asked.join()}`);
      promise(results.length === 0, `a message of the ${role} holds results`);
      asked = blocks.flatMap((block) => (block.kind === 'tool_call' ? [block.id] : []));
    }
  }
  const [first, ...seen] = viewOf(state.transcript);
  promise(
    first?.summary === undefined || seen[0]?.role !== 'tool',
    'a summary stands for calls whose results stay',
  );
  const hidden = main.length - seen.length - 1;
  promise(
    first?.summary !== undefined || hidden <= 0,
    'the model does not see messages that no summary stands for',
  );
  promise(
    state.promptBytes === bytesOf(viewOf(state.transcript)),
    'the bytes of the prompt are not what the model sees',
  );
  const batch = batchCalls(state).flatMap(({ id, compensates }) => (compensates === undefined ? [id] : []));
  promise(batch.join() === asked.join(), `the batch is ${batch.join()}, unanswered are ${asked.join()}`);
  promise(state.position.count === state.transcript.length, 'the position is not the end of the transcript');
}

function checkMessages(state: SessionState, world: World): void {
  const taken = state.transcript
    .filter(({ role, summary, report }) => role === 'user' && summary === undefined && report === undefined)
    .flatMap(({ blocks }) => blocks.map((block) => (block.kind === 'text' ? block.text : '')));
  const queued = state.inbox.filter(({ report }) => report === undefined).map(({ text }) => text);
  const there = [...taken, ...queued].sort();
  const sent = [...world.sent].sort();
  promise(
    there.join() === sent.join(),
    `the messages sent are ${sent.join()}, those in the session are ${there.join()}`,
  );
  const ids = [...state.transcript.map(({ id }) => id), ...state.inbox.map(({ id }) => id)];
  const twice = ids.find((id, i) => ids.indexOf(id) !== i);
  promise(twice === undefined, `two messages have the id ${twice}`);
}

function checkBudget(state: SessionState): void {
  const { limits, spent, reserved } = state.budget;
  const { usd: dollars = Infinity, tokens = Infinity, turns = Infinity, toolCalls = Infinity } = limits;
  const usedTokens = spent.inputTokens + spent.outputTokens + reserved.tokens;
  const usedDollars = usd(spent.nanoUsd + reserved.nanoUsd);
  const thinking = state.inFlight.filter(({ kind }) => kind === 'model').length;
  promise(usedTokens <= tokens, `${usedTokens} tokens are spent or reserved, the cap is ${tokens}`);
  promise(usedDollars <= dollars, `${usedDollars} dollars are spent or reserved, the cap is ${dollars}`);
  promise(spent.turns + thinking <= turns, `${spent.turns} turns are spent, the cap is ${turns}`);
  promise(spent.toolCalls <= toolCalls, `${spent.toolCalls} tool calls are spent, the cap is ${toolCalls}`);
  checkReserve(state);
}

/** What is reserved is what is in flight: nothing when nothing is. */
export function checkReserve({ budget: { reserved }, inFlight }: SessionState): void {
  let nanoUsd = 0;
  let held = 0;
  for (const flight of inFlight) {
    nanoUsd += flight.reserved?.nanoUsd ?? 0;
    held += flight.reserved?.tokens ?? 0;
  }
  promise(
    reserved.nanoUsd === nanoUsd && reserved.tokens === held,
    `${reserved.nanoUsd} nano-dollars and ${reserved.tokens} tokens are reserved, in flight are ${nanoUsd} and ${held}`,
  );
}

function checkPauses(state: SessionState, world: World): void {
  promise(
    (state.paused !== null) === world.paused,
    'the session is paused when it should not be, or not when it should',
  );
  promise(
    state.pauses.length === world.pauses,
    `${world.pauses} pauses are on record ${state.pauses.length} times`,
  );
  const open = state.pauses.filter(({ resumedAt }) => resumedAt === null).length;
  promise(open === (state.paused === null ? 0 : 1), `${open} pauses are open`);
}

/** Who has to do something when nothing happens by itself. */
function checkRest(state: SessionState, world: World, moves: boolean): void {
  const phase = phaseOf(state);
  promise(
    moves === (state.inFlight.length > 0 || state.continuing === 'now'),
    `something is in flight that never answers, in phase ${phase}`,
  );
  if (phase === 'closed') {
    promise(state.batch.length === 0, 'the session closed with calls that have no results');
    promise(
      state.status.kind !== 'completed' || state.inbox.length === 0,
      'the session closed over a message',
    );
    return;
  }
  if (moves) return;
  promise(
    !world.cancelled || phase === 'unknown_effect' || (phase === 'approval' && state.undo !== undefined),
    `the session was cancelled, nothing is in flight, and it is ${phase}`,
  );
  const visible = ['idle', 'approval', 'unknown_effect', 'waiting', 'paused'];
  promise(visible.includes(phase), `nothing is in flight and nobody is asked, in phase ${phase}`);
  if (phase === 'idle') {
    promise(state.inbox.length === 0, 'the session is idle over a message');
    promise(
      state.transcript.findLast(isMain)?.role !== 'tool',
      'the session is idle over results that the model has not seen',
    );
  }
  if (phase === 'waiting') promise(state.wait !== null, 'the session waits without saying for what');
  if (phase === 'approval')
    promise(batchCalls(state).some(pending), 'the session waits for an approval of nothing');
}

/** After an undo, an effect is undone, or a person has said that it is not. */
function checkUndone(state: SessionState, world: World): void {
  for (const call of state.calls) {
    const { compensates, compensatedBy, id } = call;
    if (compensatedBy !== undefined) {
      const by = state.calls.find((other) => other.id === compensatedBy);
      promise(
        by !== undefined && world.landed[by.idempotencyKey] === 1,
        `${id} is marked as undone, and is not`,
      );
    }
    if (compensates !== undefined || state.undo === undefined || state.undo.givenUp === true) continue;
    if (call.status.kind !== 'completed' || call.replayOf !== null) continue;
    const tried = state.calls.find((other) => other.compensates?.idempotencyKey === call.idempotencyKey);
    promise(tried !== undefined, `the session closed, and nothing has undone ${id}`);
    const ended = tried.status.kind === 'completed' ? compensatedBy === tried.id : isFinal(tried);
    promise(ended, `the session closed before ${id} was undone`);
  }
}

function pending(call: ToolCall): boolean {
  return call.status.kind === 'approval';
}

/** Whether a walk may end here: closed, or a chat that waits for its next message. */
export function isGoal(state: SessionState): boolean {
  const phase = phaseOf(state);
  return phase === 'closed' || (phase === 'idle' && state.inbox.length === 0 && state.inFlight.length === 0);
}
