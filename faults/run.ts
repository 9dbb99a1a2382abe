/** One run: a story told on a stage, observed and judged. */
import { type Finding, judge } from './judge.ts';
import type { Lane } from './lane.ts';
import { type Observed, observe } from './observe.ts';
import type { FaultPoint } from './points/point.ts';
import { Stage } from './stage.ts';
import type { Story, ToolKind } from './story.ts';

/** What a run came to, for one session or, of a global effect, two. */
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
  /** Why its stage did not close: the lane is of no more use then. */
  readonly unclosed: string | null;
}

/** How long a fault may take to be brought about, in milliseconds: a session may never come to its step. */
const INJECT_MS = 180_000;

let runs = 0;

/**
 * Tells a story on a lane. What goes wrong in the telling, or in looking at what it left, is an `error` among the
 * findings. Throws only when there is no stage for it: then the lane is of no more use, and nothing was told.
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

/** Lets the fault happen and the sessions come to rest; returns what went wrong. */
async function played(stage: Stage, point: FaultPoint): Promise<string | null> {
  try {
    const after = await inTime(point.inject(stage), 'the fault was not brought about');
    await stage.rest();
    await stage.sent();
    // What came late has its turn, too.
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
    // An approval is asked for without any fault.
    toPerson: own.filter(({ people }) => people.some(({ what }) => what !== 'approval')).length,
    goOnMs: own.flatMap(({ landed, wentOnAt }) =>
      landed === null || wentOnAt === null ? [] : [wentOnAt - landed.at],
    ),
  };
}
