/** A state of the session and of the world: branched, moved on by one action, and named for the visited set. */

import { hash } from 'node:crypto';
import { whatHappened } from '../../../src/history/what-happened.ts';
import type { Origin, SessionState } from '../../../src/index.ts';
import { evolve, take } from '../../../src/session/advance.ts';
import { decide } from '../../../src/session/decide.ts';
import type { Command, Input, Moment, Step } from '../../../src/session/events.ts';
import { initialState, type SessionIdentity } from '../../../src/session/initial.ts';
import type { Refusal } from '../../../src/session/refusal.ts';
import { checkCommand, Violation } from './invariants.ts';
import { FORK, MOMENT, type Scenario, SESSION } from './scenario.ts';
import { type Action, freshWorld, type World, wholeOf } from './world.ts';

/** The transition functions under test: the core's own, or a variant with a planted fault. */
export interface Protocol {
  evolve(state: SessionState, input: Input, moment: Moment): Refusal | null;
  decide(state: SessionState, moment: Moment): Step | null;
  take(state: SessionState, step: Step, moment: Moment): Command | null;
}

/** What the live workflow and the fold run. */
export const CORE: Protocol = { evolve, decide, take };

/** Steps within one activation after which it does not come to rest. */
const STEPS = 100;

export interface Node {
  state: SessionState;
  world: World;
}

/** Where a walk starts: a session with one message, before anything was asked of the world. */
export function startNode(scenario: Scenario, protocol: Protocol): Node {
  const input = {
    agent: 'clerk',
    message: { text: 'm0', by: 'asker' },
    mode: scenario.mode ?? 'task',
    ...(scenario.budget === undefined ? {} : { budget: scenario.budget }),
  };
  const node = {
    state: initialState(identityOf(SESSION, 'r'), input, MOMENT),
    world: freshWorld(scenario),
  };
  rest(scenario, protocol, node);
  return node;
}

/**
 * What follows when an action happens, and what the session asked of the world then; `null` when the action
 * asks for more than may happen.
 *
 * @throws Violation when a command breaks a promise or the session does not come to rest.
 */
export function follow(
  scenario: Scenario,
  protocol: Protocol,
  from: Node,
  action: Action,
): { node: Node; commands: Command[] } | null {
  const node = branch(from);
  action.happens?.(node.world);
  for (const left of Object.values(node.world.left)) if (left < 0) return null;
  if (action.time === 'next run') return goOn(scenario, protocol, node);
  if (action.time === 'checkpoint') remember(node);
  else if (action.time === 'fork') return fork(scenario, protocol, node);
  else if (action.time !== undefined) return travel(scenario, protocol, node, action.time);
  if (action.deliveries.length === 0) return { node, commands: [] };
  for (const { input, recorded } of action.deliveries) {
    recorded(node.world, protocol.evolve(node.state, input, MOMENT) === null);
  }
  return { node, commands: rest(scenario, protocol, node) };
}

/** Begins the next run with what JSON carries over. */
function goOn(scenario: Scenario, protocol: Protocol, from: Node): { node: Node; commands: Command[] } {
  const carried = JSON.parse(JSON.stringify(from.state)) as SessionState;
  const { sessionId, runId } = carried;
  const identity = { ...identityOf(sessionId, `${runId}+`), firstRunId: runId };
  const node = { state: initialState(identity, { agent: 'clerk', carried }, MOMENT), world: from.world };
  return { node, commands: rest(scenario, protocol, node) };
}

function remember({ state, world }: Node): void {
  const { approvals, approvers, sent, pauses, sealed } = world;
  const text = JSON.stringify(state);
  const name = hash('sha1', JSON.stringify(essence(state)), 'base64');
  const open = state.calls
    .filter(({ idempotencyKey: key, dispatches }) => dispatches.length > 0 && isDoubtful(world, key))
    .map(({ id }) => id);
  const given = { approvals: copy(approvals), approvers: copy(approvers) };
  const then = { ...given, sealed: copy(sealed), sent: [...sent] };
  world.checkpoint = { state: text, name, ...then, pauses, open };
}

function isDoubtful({ keys }: World, key: string): boolean {
  return keys[key] === 'in flight' || keys[key] === 'in doubt';
}

/** Starts another session from the checkpoint: what `Sessions.fork` does. What is in flight goes on without it. */
function fork(
  scenario: Scenario,
  protocol: Protocol,
  { world }: Node,
): { node: Node; commands: Command[] } | null {
  const { checkpoint } = world;
  if (checkpoint === null) return null;
  world.loaded = JSON.stringify({ state: JSON.parse(checkpoint.state) as SessionState, after: null });
  const { approvals, sent, sealed, open: doubted } = checkpoint;
  // Approvals that were not enough do not count in a fork.
  const people = Math.max(...Object.values(scenario.tools).map((tool) => tool.approval?.people ?? 1));
  const done = Object.entries(checkpoint.approvers).filter(([, { now }]) => now.length >= people);
  const approvers = Object.fromEntries(done);
  for (const attempt of world.attempts) attempt.lost = true;
  // What the other session began after the checkpoint is its own affair: the fork says nothing of it.
  world.attempts = world.attempts.filter(({ callId, landed }) => !landed && doubted.includes(callId));
  const known = ([name]: [string, number]): boolean => doubted.some((id) => name.startsWith(`${id} `));
  world.landedByCall = Object.fromEntries(Object.entries(world.landedByCall).filter(known));
  const fresh = { pauses: 0, paused: false, cancelled: false, checkpoint: null };
  Object.assign(world, { approvals, approvers, sent, sealed, doubted, ...fresh });
  return begin(scenario, protocol, world, 'fork', identityOf(FORK, 'f1'));
}

function identityOf(sessionId: string, runId: string): SessionIdentity {
  return { sessionId, runId, firstRunId: runId };
}

function begin(
  scenario: Scenario,
  protocol: Protocol,
  world: World,
  kind: Origin['kind'],
  identity: SessionIdentity,
): { node: Node; commands: Command[] } {
  const origin = { kind, sessionId: SESSION, runId: 'r', eventId: 1, by: 'p', reason: '' };
  const input = { agent: 'clerk', mode: scenario.mode ?? 'task', origin };
  const node = { state: initialState(identity, input, MOMENT), world };
  return { node, commands: rest(scenario, protocol, node) };
}

/** Ends the run, and starts its successor from the checkpoint: what `Sessions.rewind` does. */
function travel(
  scenario: Scenario,
  protocol: Protocol,
  { state: last, world }: Node,
  how: 'rewind' | 'terminate',
): { node: Node; commands: Command[] } | null {
  const { checkpoint } = world;
  if (checkpoint === null) return null;
  if (how === 'rewind' && protocol.evolve(last, { type: 'seal', value: {} }, MOMENT) !== null) return null;
  const past = JSON.parse(checkpoint.state) as SessionState;
  const whole = wholeOf(past, checkpoint);
  world.loaded = JSON.stringify({ state: past, after: whatHappened(whole, wholeOf(last, world)) });
  for (const attempt of world.attempts) {
    attempt.lost = true;
    world.keys[attempt.key] = 'in doubt';
  }
  world.attempts = world.attempts.filter(({ landed }) => !landed);
  // Of the branch that is left only its effects remain: a call of the new one may have the id of one of its calls.
  const known = ([name]: [string, number]): boolean =>
    whole.calls.some(({ id }) => name.startsWith(`${id} `));
  world.landedByCall = Object.fromEntries(Object.entries(world.landedByCall).filter(known));
  const { approvals, approvers, sent, pauses, sealed } = checkpoint;
  const mostSent = Math.max(world.mostSent, world.sent.length);
  const fresh = { paused: false, cancelled: false, checkpoint: null };
  Object.assign(world, { approvals, approvers, sent, sealed, mostSent, pauses, ...fresh });
  return begin(scenario, protocol, world, 'rewind', identityOf(SESSION, 'r2'));
}

/** Lets the session decide until it waits; the same loop as `advance`. */
function rest(scenario: Scenario, protocol: Protocol, { state, world }: Node): Command[] {
  const commands: Command[] = [];
  let steps = 0;
  for (let step = protocol.decide(state, MOMENT); step !== null; step = protocol.decide(state, MOMENT)) {
    steps += 1;
    if (steps > STEPS)
      throw new Violation(`the session does not come to rest: ${step.type} after ${STEPS} steps`);
    const seq = state.seq;
    const command = protocol.take(state, step, MOMENT);
    if (command === null) continue;
    if (
      command.kind === 'cancel' &&
      commands.some((issued) => 'seq' in issued && issued.seq === command.seq)
    ) {
      throw new Violation(`command ${command.seq} was issued and stopped in one activation`);
    }
    checkCommand(scenario, state, world, command, seq);
    commands.push(command);
  }
  state.notices = [];
  return commands;
}

/** An independent copy. The manifest and messages are shared: nothing may change them once they are written. */
function branch({ state, world }: Node): Node {
  const { manifest, transcript, ...rest } = state;
  return {
    state: { ...copy(rest), manifest, transcript: [...transcript] },
    world: copy(world),
  };
}

function copy<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => copy(item)) as T;
  const out: Record<string, unknown> = {};
  for (const key in value) out[key] = copy(value[key]);
  return out as T;
}

/**
 * The name of a state, equal for states that cannot be told apart by what follows: without clocks, command
 * numbers, and words that nobody decides by.
 */
export function nameOf(node: Node): string {
  const { state, world } = node;
  const attempts = world.attempts.map(({ callId, key, landed, lost }) => [callId, key, landed, lost]);
  // Nobody reads again what has been loaded.
  const loads = state.inFlight.some(({ kind }) => kind === 'load');
  const loaded = loads || state.loading !== null ? world.loaded : '';
  const known = { ...world, attempts, loaded, checkpoint: world.checkpoint?.name };
  return hash('sha1', JSON.stringify([essence(state), known]), 'base64');
}

function essence(state: SessionState): unknown[] {
  const { budget } = state;
  const capped = budget.limits.usd !== undefined || budget.limits.tokens !== undefined;
  // Without a cap nobody decides by what is spent, and no cap can come: only caps that are reached are raised.
  const spent = capped ? budget.spent : { ...budget.spent, inputTokens: 0, outputTokens: 0, nanoUsd: 0 };
  return [
    state.status.kind,
    state.manifest === null,
    state.turn,
    state.message,
    state.messagesTaken,
    state.transcript.map(({ id, blocks }) => [
      id,
      blocks.map((block) => {
        if (block.kind === 'tool_result') return [block.call_id, block.is_error];
        return block.kind === 'tool_call' ? block.id : block.kind === 'text' ? block.text : '';
      }),
    ]),
    state.inbox.map(({ id, text }) => [id, text]),
    state.calls.map((call) => [
      call.id,
      statusOf(call.status),
      call.idempotencyKey,
      call.keyOf,
      call.args,
      call.dispatches.length,
      call.dispatches.filter(({ released, unbegun, asked }) => released || unbegun || asked).length,
      call.answers?.length,
      call.decision === null,
      call.replayOf,
      call.compensatedBy,
      call.result?.isError,
    ]),
    state.children?.map(({ callId, told, end, background }) => [callId, told, end?.status, background?.due]),
    state.batch,
    state.interrupted,
    state.inFlight.map(({ kind, callId, cancelled, told, summarize, compact }) => [
      kind,
      callId,
      cancelled,
      told,
      summarize,
      compact,
    ]),
    state.compaction,
    state.summarized,
    budget.limits,
    Object.keys(budget.limits).length > 0 ? spent : 0,
    capped || state.manifest?.contextWindow !== undefined
      ? [budget.reserved, state.promptBytes, state.measured]
      : 0,
    state.paused?.requestedNow,
    state.pauses.length,
    state.pauses.at(-1)?.resumedAt === null,
    state.wait?.reason,
    state.cancelling === null,
    state.undo && [state.undo.begun, state.undo.givenUp, state.undo.earlier],
    state.finishing,
    state.loop.count,
    state.modelFailures,
    state.workersLost,
    state.resting,
    state.fromModel,
    state.loading === null,
    state.sealed === null,
    state.carried,
    state.continuing,
    state.past && [state.past.turn, state.past.messageIds],
    state.timers?.map(({ kind, callId }) => [kind, callId]),
    state.notBeforeTurn,
  ];
}

function statusOf(status: SessionState['calls'][number]['status']): unknown {
  switch (status.kind) {
    case 'approval':
      return [status.kind, status.expiresAt === null, status.problem === undefined, status.question];
    case 'awaiting':
      return [status.kind, status.checks > 0, status.due, status.person === undefined];
    case 'stuck':
      return [status.kind, status.due, status.failed];
    case 'deferred':
      return [status.kind, status.to];
    case 'failed':
      return [status.kind, status.certain];
    default:
      return status.kind;
  }
}
