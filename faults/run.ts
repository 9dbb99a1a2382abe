/** Runs one story on a stage, then observes and judges it. */
import { type Finding, judge } from './judge.ts';
import type { Lane } from './lane.ts';
import { type Observed, observe } from './observe.ts';
import type { FaultPoint } from './points/point.ts';
import { Stage } from './stage.ts';
import type { Story, ToolKind } from './story.ts';

/** The outcome of a run for one session, or for the two sessions of a global effect. */
export interface Outcome {
  readonly kind: ToolKind;
  readonly landed: number;
  readonly duplicates: number;
  /** Claims that are not true, and calls that were given up. */
  readonly losses: number;
  readonly gap: number;
  readonly repeats: number;
  readonly toPerson: number;
  /** Milliseconds from the fault to rest, one for each session. */
  readonly goOnMs: readonly number[];
}

export interface RunResult {
  readonly story: Story;
  readonly ms: number;
  readonly evidence: string | null;
  readonly outcomes: readonly Outcome[];
  /** What broke a guarantee, or kept the fault from landing. */
  readonly breaches: readonly Finding[];
  readonly allowed: readonly Finding[];
  readonly observed: Observed;
  /** Why its stage did not close. If it did not, the lane cannot be used again. */
  readonly unclosed: string | null;
}

/** How long a point may take to make its fault happen, in milliseconds: a session may never reach its step. */
const INJECT_MS = 180_000;

let runs = 0;

/**
 * Runs a story on a lane. A problem while it runs or is observed is an `error` among the findings. Throws only if no
 * stage can be opened: then nothing was run, and the lane cannot be used again.
 */
export async function tell(point: FaultPoint, story: Story, lane: Lane): Promise<RunResult> {
  const started = performance.now();
  runs += 1;
  const stage = await Stage.open(`run-${process.pid}-${runs}`, story, lane, point.key);
  const { observed, findings } = await judged(stage, point, await played(stage, point));
  const unclosed = await stage.close().then(() => null, words);
  return {
    story,
    ms: performance.now() - started,
    evidence: stage.actors.find(({ landed }) => landed !== null)?.landed?.evidence ?? null,
    outcomes: story.kinds.map((kind) => outcome(kind, observed, findings)),
    breaches: findings.filter(({ allowed }) => allowed === null),
    allowed: findings.filter(({ allowed }) => allowed !== null),
    observed,
    unclosed,
  };
}

/** Makes the fault happen and waits until the sessions rest. Returns what went wrong. */
async function played(stage: Stage, point: FaultPoint): Promise<string | null> {
  try {
    const after = await inTime(point.inject(stage), 'the fault was not brought about');
    await stage.rest();
    await stage.sent();
    // Messages that came late need another rest.
    await stage.rest();
    for (const actor of stage.actors) actor.wentOnAt = actor.restedAt;
    if (after !== undefined) {
      await after();
      await stage.rest();
    }
    return null;
  } catch (thrown) {
    return words(thrown);
  }
}

async function judged(
  stage: Stage,
  point: FaultPoint,
  error: string | null,
): Promise<{ observed: Observed; findings: Finding[] }> {
  try {
    const observed = await observe(stage, error);
    return { observed, findings: judge(observed, point) };
  } catch (thrown) {
    const both = [error, words(thrown)].filter((each) => each !== null).join('\n');
    const nothing = { story: stage.story, sessions: [], effects: {}, rows: [], model: [], error: both };
    return { observed: nothing, findings: judge(nothing, point) };
  }
}

function words(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}

async function inTime<T>(work: Promise<T>, otherwise: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${otherwise} in ${INJECT_MS / 1_000} s`)), INJECT_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function outcome(kind: ToolKind, observed: Observed, findings: readonly Finding[]): Outcome {
  const own = observed.sessions.filter(({ task }) => task.kind === kind);
  const count = (breach: Finding['breach'], allowed: Finding['allowed']): number =>
    findings.filter((each) => each.kind === kind && each.breach === breach && each.allowed === allowed)
      .length;
  return {
    kind,
    landed: own.filter(({ landed }) => landed !== null).length,
    duplicates: count('duplicate', null),
    losses: count('loss', null) + count('not-done', null),
    gap: count('duplicate', 'gap'),
    repeats: count('duplicate', 'repeatable'),
    // Approvals are requested even without a fault.
    toPerson: own.filter(({ people }) => people.some(({ what }) => what !== 'approval')).length,
    goOnMs: own.flatMap(({ landed, wentOnAt }) =>
      landed === null || wentOnAt === null ? [] : [wentOnAt - landed.at],
    ),
  };
}
