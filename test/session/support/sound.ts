/** Holds a session against its own history: what every test of sessions asks at its end. */
import { Worker } from '@temporalio/worker';
import { expect } from 'vitest';
import { canonicalJson } from '../../../src/contract/json.ts';
import { type Fold, foldHistory } from '../../../src/history/index.ts';
import {
  type Checkpoint,
  isPerdureError,
  type JsonValue,
  type Page,
  type PageInput,
  PerdurePlugin,
  type Session,
  type SessionState,
  TemporalSaver,
} from '../../../src/index.ts';
import { sessionView } from '../../../src/session/views.ts';
import { type HistoryEvent, previousRun, readEvents } from '../../../src/temporal/index.ts';
import type { Stage } from '../../support/stage.ts';

type History = Parameters<typeof Worker.runReplayHistory>[1];
/** Replays a history with Temporal's own SDK; rejects when the workflow would ask for other commands. */
export async function replay(history: History, workflowId: string): Promise<void> {
  await Worker.runReplayHistory({ plugins: [new PerdurePlugin({ agents: [] })] }, history, workflowId);
}

/** The history of a session's present run, its fold, and a copy of the state at each of its checkpoints. */
async function foldOf(stage: Stage, session: Session): Promise<FoldedSession> {
  const checkpoints: SessionState[] = [];
  const places: number[] = [];
  const events: HistoryEvent[] = [];
  for await (const event of readEvents(stage.client, { workflowId: session.id })) events.push(event);
  const fold = await foldHistory([events], stage.client.options, {
    onTask: ({ state, eventId }) => {
      checkpoints.push(structuredClone(state));
      places.push(eventId);
    },
  });
  // The server holds back a run after one that lived for less than a second.
  if (fold.state === null && previousRun(events[0]) !== null) return foldOf(stage, session);
  return { ...fold, checkpoints, places, history: { events } };
}

interface FoldedSession extends Fold {
  checkpoints: SessionState[];
  /** The event of each checkpoint. */
  places: number[];
  history: { events: HistoryEvent[] };
}

/** What a saver has answered, and how many answers were there when it was asked. */
interface Seen {
  checkpoint: Checkpoint;
  after: number;
}

/** A saver that is kept from step to step, and what it has answered, by session. */
interface Onlooker {
  saver: TemporalSaver;
  seen: Map<string, Seen[]>;
}

const onlookers = new WeakMap<Stage, Onlooker>();

/** Looks at a session's latest checkpoint, as a program that lives as long as the stage; {@link expectSound} judges it. */
export async function lookOn(stage: Stage, { id }: Session): Promise<void> {
  const onlooker: Onlooker = onlookers.get(stage) ?? {
    saver: new TemporalSaver(stage.client),
    seen: new Map(),
  };
  onlookers.set(stage, onlooker);
  const seen = onlooker.seen.get(id) ?? [];
  onlooker.seen.set(id, seen);
  const after = seen.length;
  const checkpoint = await onlooker.saver.get(id);
  if (checkpoint !== null) seen.push({ checkpoint, after });
}

/**
 * What was seen from step to step is what the fold of the whole history says of each place, and never went back: no
 * answer is older than one that was there when it was asked for. Several may be asked for at once.
 */
function expectSeen(stage: Stage, { id }: Session, { runId: run, checkpoints, places }: FoldedSession): void {
  const seen = onlookers.get(stage)?.seen.get(id) ?? [];
  const order = seen.map(({ checkpoint }) => {
    const [runId, eventId] = checkpoint.id.split(':');
    return runId === run ? places.indexOf(Number(eventId)) : -1;
  });
  for (const [i, { checkpoint, after }] of seen.entries()) {
    const [runId] = checkpoint.id.split(':');
    // What was seen of earlier runs is in their histories.
    if (runId !== run) continue;
    const at = order[i] ?? -1;
    expect(at, checkpoint.id).toBeGreaterThanOrEqual(Math.max(0, ...order.slice(0, after)));
    expect(checkpoint.metadata['step']).toBe(at + 1);
    if (at > 0) expect(checkpoint.parent_id).toBe(`${runId}:${places[at - 1]}`);
    expectSame(checkpoint.state, checkpoints[at]);
  }
  if (seen.length > 0) expect(Math.max(...order)).toBe(places.length - 1);
}

/**
 * Checks a session at rest: the fold of its history is its live state and what a saver answers that may have looked
 * on for long, each of its checkpoints keeps the budget, and Temporal's own SDK replays the history.
 *
 * @returns what {@link foldOf} does.
 */
export async function expectSound(stage: Stage, session: Session): Promise<FoldedSession> {
  let folded = await foldOf(stage, session);
  // At rest, it may still give back to its pool, or leave for a new run.
  const isSettled = (): boolean =>
    folded.end !== null ||
    !(folded.state?.inFlight ?? []).some(({ kind }) => kind === 'draw' || kind === 'storePast');
  while (!isSettled()) folded = await foldOf(stage, session);
  const { state, checkpoints, end, history } = folded;
  if (end === null && state !== null) await expectLive(session, state);
  await lookOn(stage, session);
  expectSeen(stage, session, folded);
  for (const checkpoint of checkpoints) expectWithinBudget(checkpoint);
  await replay(history, session.id);
  return folded;
}

/** The fold is the live state; of one that a query cannot carry, the view and all pages of its lists. */
async function expectLive(session: Session, state: SessionState): Promise<void> {
  const whole = await session.snapshot().catch((error: unknown) => {
    if (isPerdureError(error, 'TOO_LARGE')) return null;
    throw error;
  });
  if (whole !== null) {
    expectSame(state, whole);
    return;
  }
  expectSame(sessionView(state), await session.state());
  expectSame(state.transcript, await allPages((page) => session.transcript(page)));
  expectSame(state.calls, await allPages((page) => session.calls(page)));
}

/** A list that is read in pages, from its end. */
export async function allPages<T>(read: (page: PageInput) => Promise<Page<T>>): Promise<T[]> {
  const all: T[] = [];
  let { items, first } = await read({});
  for (all.unshift(...items); first > 0; all.unshift(...items))
    ({ items, first } = await read({ before: first }));
  return all;
}

/** What is spent and reserved never exceeds a cap; active time is only known once it is spent. */
function expectWithinBudget({ budget: { limits, spent, reserved } }: SessionState): void {
  const unlimited = Number.POSITIVE_INFINITY;
  expect(spent.turns).toBeLessThanOrEqual(limits.turns ?? unlimited);
  expect(spent.toolCalls).toBeLessThanOrEqual(limits.toolCalls ?? unlimited);
  expect(spent.inputTokens + spent.outputTokens + reserved.tokens).toBeLessThanOrEqual(
    limits.tokens ?? unlimited,
  );
  expect((spent.nanoUsd + reserved.nanoUsd) / 1e9).toBeLessThanOrEqual(limits.usd ?? unlimited);
  expect(reserved.tokens).toBeGreaterThanOrEqual(0);
  expect(reserved.nanoUsd).toBeGreaterThanOrEqual(0);
}

/** Two values have one canonical JSON; shows where they differ, for states are long. */
function expectSame(folded: unknown, live: unknown): void {
  if (canonical(folded) === canonical(live)) return;
  expect({ folded: differences(folded, live) }).toEqual({ folded: [] });
}

function differences(folded: unknown, live: unknown, path = '$'): string[] {
  const inside = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null;
  if (!inside(folded) || !inside(live)) {
    const [a, b] = [JSON.stringify(folded), JSON.stringify(live)];
    return a === b ? [] : [`${path}: folded ${a}, live ${b}`];
  }
  const keys = new Set([...Object.keys(folded), ...Object.keys(live)]);
  return [...keys].flatMap((key) => differences(folded[key], live[key], `${path}.${key}`));
}

function canonical(value: unknown): string {
  return canonicalJson(value as JsonValue);
}
