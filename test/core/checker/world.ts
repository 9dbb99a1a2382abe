/** The world as it is, beside what the session has recorded of it. */
import { isAnswered } from '../../../src/contract/calls.ts';
import type { InFlight, SessionState, ToolCall } from '../../../src/index.ts';
import type { Input, Outcome } from '../../../src/session/events.ts';
import { withUndone } from '../../../src/temporal/past.ts';
import type { Chance, Scenario } from './scenario.ts';

/** One dispatch of a mutation that can still land or whose landing is not settled. */
export interface Attempt {
  /** Its command is named by both: a session that was taken back counts from one again. */
  runId: string;
  seq: number;
  callId: string;
  key: string;
  landed: boolean;
  /** The session has been told that it is lost: nobody will hear of it again, but it may still land. */
  lost: boolean;
}

/** What has been told to the session about a key; a dispatch is allowed only when it is `free`. */
export type KeyRecord = 'free' | 'in flight' | 'in doubt' | 'done';

/** Whether somebody has decided on a call that needs approval. */
export type Approval = 'open' | 'granted' | 'denied' | 'checking';

/** Effects and promises: what invariants are judged by. Nothing in here is read by the session. */
export interface World {
  attempts: Attempt[];
  /** Effects that landed, by idempotency key and by call. */
  landed: { [key: string]: number };
  landedByCall: { [callIdAndKey: string]: number };
  keys: { [key: string]: KeyRecord };
  /** Global effects that were asked for: each has a session of its own, which nobody here can end. */
  effects: { [key: string]: 'running' | 'landed' | 'absent' };
  approvals: { [callId: string]: Approval };
  /** Who has approved the arguments of a call that takes several people, and those before an edit that is checked. */
  approvers: { [callId: string]: { now: string[]; before: string[] } };
  /** Texts of messages that were accepted. */
  sent: string[];
  /** The most that were accepted in a run that a rewind has left. */
  mostSent: number;
  pauses: number;
  paused: boolean;
  cancelled: boolean;
  /** The settle assumption does not hold. */
  landsForEver: boolean;
  left: { [chance in Chance]?: number };
  /** A state that the session may be taken back to, with what was true then. */
  checkpoint: Checkpoint | null;
  /** What the `load` of a session that was taken back or forked reads. */
  loaded: string;
  /** What has left the session's runs. */
  sealed: Sealed;
  /** Calls that were open where a fork began, of which nobody has said yet that they did not happen. */
  doubted: string[];
}

/** What the pieces of a session hold. */
export type Sealed = Pick<SessionState, 'transcript' | 'calls' | 'pauses'>;

/** A session's state with what has left its runs. */
export function wholeOf(state: SessionState, { sealed }: Pick<World, 'sealed'>): SessionState {
  if (state.past === undefined) return state;
  const { past, ...own } = state;
  return {
    ...own,
    transcript: [...sealed.transcript.slice(0, past.messages), ...own.transcript],
    calls: withUndone([...sealed.calls, ...own.calls]),
    pauses: [...sealed.pauses, ...own.pauses],
  };
}

/** The call that has left the runs and whose record answers a key. */
export function answeredBefore({ sealed }: World, key: string): ToolCall | undefined {
  return sealed.calls.find(
    (call) => call.idempotencyKey === key && call.replayOf === null && isAnswered(call),
  );
}

/** See {@link World.checkpoint}. */
export interface Checkpoint {
  state: string;
  name: string;
  sealed: Sealed;
  approvals: World['approvals'];
  approvers: World['approvers'];
  sent: string[];
  pauses: number;
  /** Calls whose effect was open, for all that the session had been told. */
  open: string[];
}

/** A world in which nothing has happened. */
export function freshWorld(scenario: Scenario): World {
  return {
    attempts: [],
    landed: {},
    landedByCall: {},
    keys: {},
    effects: {},
    approvals: {},
    approvers: {},
    sent: ['m0'],
    mostSent: 0,
    pauses: 0,
    paused: false,
    cancelled: false,
    landsForEver: scenario.landsForEver === true,
    left: { ...scenario.may },
    checkpoint: null,
    loaded: '',
    sealed: { transcript: [], calls: [], pauses: [] },
    doubted: [],
  };
}

/** One input of an action, and what the world knows once it was accepted or refused. */
export interface Delivery {
  input: Input;
  recorded: (world: World, accepted: boolean) => void;
}

/** Something that can happen in a state. */
export interface Action {
  /** In words, for the story of a counterexample. */
  story: string;
  /** People may do it or not; what the world does, it does at last. */
  by: 'world' | 'person';
  /** What happens in the world at that moment, before the session hears of it. */
  happens?: (world: World) => void;
  deliveries: Delivery[];
  /**
   * The state becomes a checkpoint, or the session is taken back to it: sealed first, or after its run was ended. Or a
   * fork begins there, which is followed from then on: what it was taken from lives on unseen. `next run`: the session's
   * next run begins.
   */
  time?: 'checkpoint' | 'rewind' | 'terminate' | 'fork' | 'next run';
}

/** An outcome that reaches the session. */
export function answer(
  { seq }: InFlight,
  story: string,
  outcome: Outcome,
  happens?: (world: World) => void,
  recorded: (world: World, accepted: boolean) => void = () => {},
): Action {
  const input: Input = { type: 'outcome', seq, outcome };
  return {
    story,
    by: 'world',
    deliveries: [{ input, recorded }],
    ...(happens === undefined ? {} : { happens }),
  };
}

/** The attempt of a command that still runs. */
export function liveAttempt(world: World, seq: number): Attempt | undefined {
  return world.attempts.find((attempt) => attempt.seq === seq && !attempt.lost);
}

/** Lets an attempt have its effect. */
export function land(world: World, { callId, key, seq, runId }: Attempt): void {
  const attempt = world.attempts.find((candidate) => candidate.seq === seq && candidate.runId === runId);
  if (attempt === undefined) return;
  attempt.landed = true;
  world.landed[key] = (world.landed[key] ?? 0) + 1;
  const name = `${callId} ${key}`;
  world.landedByCall[name] = (world.landedByCall[name] ?? 0) + 1;
  // Of a lost one that has landed there is nothing more to come.
  if (attempt.lost) forget(world, (candidate) => candidate === attempt);
}

/** Drops attempts of which nothing more can come. */
export function forget(world: World, which: (attempt: Attempt) => boolean): void {
  world.attempts = world.attempts.filter((attempt) => !which(attempt));
}

/** Takes one of the chances; below zero the action was not possible. */
export function spend(world: World, chance: Chance): void {
  world.left[chance] = (world.left[chance] ?? 0) - 1;
}
