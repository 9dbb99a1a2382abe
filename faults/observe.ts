/** Reads what a run left behind from sources that cannot lie: the ledger's file, the model's record, the histories. */
import type { SessionState, ToolCall } from 'perdure';
import { readRecordFile } from 'perdure/testing';
import { canonicalJson, type JsonObject } from '../src/contract/json.ts';
import { foldHistory, foldSession } from '../src/history/index.ts';
import { isNotFound, readPages } from '../src/temporal/index.ts';
import { wholeState } from '../src/temporal/past.ts';
import { lostOfRun, runsOf } from './lost.ts';
import { retried } from './patience.ts';
import type { PersonRecord } from './people.ts';
import type { Actor, Stage } from './stage.ts';
import type { Story, Task } from './story.ts';
import { sessionsBelow } from './trees.ts';

/** A model call of a session, from issue to end. */
export interface ModelFlight {
  /** Billionths of a dollar. */
  readonly reserved: number;
  readonly replied: boolean;
  readonly charged: number;
  /** The history says that its worker was lost. */
  readonly lost: boolean;
}

export interface ObservedSession {
  readonly task: Task;
  readonly landed: Actor['landed'];
  readonly wentOnAt: number | null;
  readonly restedAt: number | null;
  readonly lastPhase: string | null;
  readonly state: SessionState | null;
  /** Where the fold of the history differs from the live state, or why there is no fold. */
  readonly foldDiffers: readonly string[];
  readonly flights: readonly ModelFlight[];
  readonly acknowledged: readonly string[];
  readonly people: readonly PersonRecord[];
}

/** The observations that are judged. Plain JSON, so that a run can be stored and judged again. */
export interface Observed {
  readonly story: Story;
  readonly sessions: readonly ObservedSession[];
  /** The calls in the sessions of global effects, by key. */
  readonly effects: Readonly<Record<string, ToolCall>>;
  readonly rows: readonly {
    readonly id: string;
    readonly key: string | null;
    readonly at: string;
    readonly tag: string;
  }[];
  readonly model: readonly {
    readonly session: string;
    readonly at: string;
    readonly position: number;
    readonly outcome: string;
  }[];
  /** What went wrong in running the story itself. */
  readonly error: string | null;
}

/** Reads all observations of a stage. */
export async function observe(stage: Stage, error: string | null): Promise<Observed> {
  const sessions: ObservedSession[] = [];
  const effects: Record<string, ToolCall> = {};
  const below = stage.actors.filter(({ task }) => task.below !== undefined);
  const under = await Promise.all(below.map((actor) => actorsBelow(stage, actor)));
  for (const actor of [...stage.actors, ...under.flat()]) {
    const unfolded: string[] = [];
    /** A history that cannot be folded is a finding. The rest is still observed. */
    const folded = <T>(fold: () => Promise<T>): Promise<T | null> =>
      retried(fold).catch((error: unknown) => {
        unfolded.push(String(error));
        return null;
      });
    const seen = (await folded(() => observeSession(stage, actor))) ?? unread(actor);
    for (const call of seen.state?.calls ?? []) {
      if (call.scope !== 'global' || effects[call.idempotencyKey] !== undefined) continue;
      const effect = await folded(() =>
        foldOf(stage, `effect:${call.idempotencyKey}`).catch((error: unknown) => {
          // A call that was never dispatched has no such session.
          if (isNotFound(error)) return null;
          throw error;
        }),
      );
      const own = effect?.state?.calls[0];
      if (own !== undefined) effects[call.idempotencyKey] = own;
    }
    sessions.push({ ...seen, foldDiffers: [...seen.foldDiffers, ...unfolded] });
  }
  const tags = new Set(stage.actors.map(({ task }) => task.tag));
  return {
    story: stage.story,
    sessions,
    effects,
    rows: stage.lane
      .ledger()
      .filter(({ args }) => tags.has(args.reason.split('#')[0] ?? ''))
      .map(({ id, key, at, args }) => ({ id, key, at, tag: args.reason })),
    model: readRecordFile(stage.recordFile).map(({ at, digest, assistantCount, outcome }) => ({
      session: stage.requestsOf.get(digest)?.session ?? '',
      at,
      position: stage.requestsOf.get(digest)?.position ?? assistantCount,
      outcome,
    })),
    error,
  };
}

/** The sessions of the sub-agents below a session, each as an actor. */
async function actorsBelow(stage: Stage, actor: Actor): Promise<Actor[]> {
  const below = await sessionsBelow(stage, actor.session);
  return below.map((each) => ({
    ...actor,
    ...each,
    wentOnAt: null,
    view: null,
    acknowledged: [],
    people: [],
  }));
}

async function observeSession(stage: Stage, actor: Actor): Promise<ObservedSession> {
  const folded = await foldOf(stage, actor.session.id);
  // The judge asks about all runs of the session.
  const state = folded.state && (await wholeState(stage.harness.client, folded.state));
  return { ...unread(actor), ...folded, state, foldDiffers: await foldDiffers(stage, actor) };
}

/** What is known of a session without its history. */
function unread({ task, landed, wentOnAt, restedAt, view, acknowledged, people }: Actor): ObservedSession {
  return {
    task,
    landed,
    wentOnAt,
    restedAt,
    lastPhase: view?.phase ?? null,
    state: null,
    foldDiffers: [],
    flights: [],
    acknowledged,
    people,
  };
}

/** How often a session's state is read until it stops changing. */
const LOOKS = 20;

/** Compares only a session at rest: while a session runs, fold and live state are from different moments. */
async function foldDiffers(stage: Stage, { session, restedAt }: Actor): Promise<string[]> {
  if (restedAt === null) return [];
  for (let look = 0; look < LOOKS; look++) {
    const before = await session.snapshot();
    const { state } = await foldOf(stage, session.id);
    const after = await session.snapshot();
    if (text(before) === text(after)) return differences(state, after);
  }
  return [`it was another state at each of ${LOOKS} looks, though at rest`];
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

function text(state: SessionState): string {
  return canonicalJson(state as unknown as JsonObject);
}

/** Folds the histories of all runs. Returns the state, and the outcome of each model call. */
async function foldOf(
  stage: Stage,
  workflowId: string,
): Promise<{ state: SessionState | null; flights: ModelFlight[] }> {
  const { client } = stage.harness;
  const flights: ModelFlight[] = [];
  let before: { spent: number; turns: number; summarized: number | undefined; open: Map<number, number> } = {
    spent: 0,
    turns: 0,
    summarized: undefined,
    open: new Map(),
  };
  let state: SessionState | null = null;
  for (const runId of await runsOf(client, workflowId)) {
    const lost = new Set((await lostOfRun(client, workflowId, runId)).map(({ id }) => id));
    const fold = await foldHistory(readPages(client, { workflowId, runId }), client.options, {
      runId,
      onTask: ({ state: at }) => {
        const { spent } = at.budget;
        const open = new Map(
          at.inFlight
            .filter(({ kind }) => kind === 'model')
            .map(({ seq, reserved }) => [seq, reserved?.nanoUsd ?? 0]),
        );
        for (const [seq, reserved] of before.open) {
          if (open.has(seq)) continue;
          const replied = spent.turns > before.turns || at.summarized !== before.summarized;
          flights.push({
            reserved,
            replied,
            charged: spent.nanoUsd - before.spent,
            lost: lost.has(String(seq)),
          });
        }
        const { summarized } = at;
        before = { spent: spent.nanoUsd, turns: spent.turns, summarized, open };
      },
    });
    // A run that no worker has taken yet has the state that the run before has carried over.
    state = fold.state ?? (await foldSession(client, workflowId, runId));
  }
  return { state, flights };
}
