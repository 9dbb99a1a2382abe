/** Chooses the stories of a run: all points at all their steps, or as many as a soak needs. */
import type { FaultPoint } from './points/point.ts';
import {
  BACKGROUND,
  type Keys,
  KINDS,
  ROLLING,
  randomOf,
  type StackName,
  type Step,
  type Story,
  shuffled,
  type ToolKind,
  TREE,
} from './story.ts';

/** What the command line fixes; the seed chooses the rest. */
export interface Fixed {
  readonly seed: number;
  /** `point` or `point@step`. */
  readonly only?: readonly string[];
  readonly keys?: Keys;
  readonly kinds?: readonly ToolKind[];
  readonly turns?: number;
  readonly strike?: number;
  readonly messages?: boolean;
  /** Default: a dev server. */
  readonly stack?: StackName;
  /** Default: one. */
  readonly workers?: number;
}

/** The kinds that reach a step, if not all do. For example, recovery only verifies mutations with a verify. */
const AT: { readonly [step in Step]?: readonly ToolKind[] } = {
  reading: ['read'],
  attached: ['global'],
  telling: ['global'],
  verifying: ['mutate', 'global'],
  verified: ['mutate', 'global'],
  ...Object.fromEntries([...TREE, ...BACKGROUND].map((step) => [step, ['idempotent', 'mutate', 'blind']])),
};

/** The requested kinds that can be struck at a step. */
function kindsAt(point: FaultPoint, step: Step, { kinds }: Fixed): readonly ToolKind[] {
  const possible = AT[step] ?? KINDS;
  const struck = point.kinds?.(step)?.filter((kind) => possible.includes(kind)) ?? possible;
  return kinds === undefined ? struck : struck.filter((kind) => kinds.includes(kind));
}

const SERVICES: readonly Keys[] = ['honoured', 'ignored'];
/**
 * Steps at which the service has no request, or has completed it: whether it honours keys makes no difference to the
 * fault.
 */
const ELSEWHERE: readonly Step[] = [
  'model-asked',
  'asking',
  'reading',
  'model-answered',
  'dispatched',
  'attached',
  'telling',
  'in-call',
  'between-turns',
  'approval',
  'verifying',
  'verified',
  ...ROLLING,
  ...TREE.filter((step) => step !== 'child-running'),
  ...BACKGROUND.filter((step) => step !== 'background-running' && step !== 'caller-ended'),
];

/**
 * Each point at each of its quick steps, with both services. If the service plays no part, with one of them in turn,
 * unless `full`.
 */
export function quickPlan(points: readonly FaultPoint[], fixed: Fixed, full: boolean): Story[] {
  const random = randomOf(fixed.seed);
  let next = 0;
  const servicesAt = (point: FaultPoint, step: Step): readonly Keys[] => {
    if (fixed.keys !== undefined) return [fixed.keys];
    if (full || (point.anyService !== true && !ELSEWHERE.includes(step))) return SERVICES;
    next += 1;
    return SERVICES.slice(next % 2, (next % 2) + 1);
  };
  const all = points.flatMap((point) =>
    point.steps
      .concat(named(point, fixed.only))
      .filter((step, i, own) => own.indexOf(step) === i && wanted(point, step, fixed))
      .map((step) => ({ point, step })),
  );
  // Background steps come last, so that a seed still gives the same other stories as before they existed.
  const isLast = ({ step }: { step: Step }): boolean => BACKGROUND.includes(step);
  return [...all.filter((each) => !isLast(each)), ...all.filter(isLast)].flatMap(({ point, step }) =>
    servicesAt(point, step).map((keys) => storyOf(point, step, keys, fixed, random)),
  );
}

/**
 * Stories until they have struck `faults` sessions: each point and step once in random order, then each once in another
 * random order, and so on.
 */
export function soakPlan(points: readonly FaultPoint[], fixed: Fixed, faults: number): Story[] {
  const random = randomOf(fixed.seed);
  const all = points.flatMap((point) =>
    [...point.steps, ...(point.soakSteps ?? [])]
      .filter((step) => wanted(point, step, fixed))
      .map((step) => ({ point, step })),
  );
  const stories: Story[] = [];
  let dealt: typeof all = [];
  for (let struck = 0; struck < faults; ) {
    if (dealt.length === 0) dealt = shuffled(all, random);
    const chosen = dealt.pop();
    if (chosen === undefined) break;
    const keys = fixed.keys ?? (stories.length % 2 === 0 ? 'honoured' : 'ignored');
    const story = storyOf(chosen.point, chosen.step, keys, fixed, random);
    stories.push(story);
    struck += story.kinds.length;
  }
  return stories;
}

function storyOf(point: FaultPoint, step: Step, keys: Keys, fixed: Fixed, random: () => number): Story {
  const kinds = kindsAt(point, step, fixed);
  // At these steps a worker may come to the breakpoint again, which would count as a turn: a call attaches more than
  // once, and a workflow task that is held long is repeated.
  const first =
    point.oneTurn === true || ['attached', 'telling', 'rolling-over', ...TREE, ...BACKGROUND].includes(step);
  const drawn = { turns: 1 + Math.floor(random() * 2), strike: random(), messages: random(), seed: random() };
  const turns = point.oneTurn === true || BACKGROUND.includes(step) ? 1 : (fixed.turns ?? drawn.turns);
  return {
    point: point.name,
    step,
    keys,
    kinds,
    turns,
    strike: first ? 1 : Math.min(turns, fixed.strike ?? 1 + Math.floor(drawn.strike * turns)),
    // Nobody writes to a cancelled session.
    messages: step !== 'caller-ended' && (fixed.messages ?? drawn.messages < 0.7),
    stack: fixed.stack ?? 'dev',
    workers: fixed.workers ?? 1,
    seed: fixed.only === undefined ? Math.floor(drawn.seed * 2 ** 31) : fixed.seed,
  };
}

/** The points that can run on a stack. */
export function tellable(
  points: readonly FaultPoint[],
  { stack = 'dev' }: Pick<Fixed, 'stack'>,
): FaultPoint[] {
  return points.filter((point) => whyNot(point, stack) === null);
}

/** Why a point cannot run, or `null`. */
export function whyNot({ needs, missing }: FaultPoint, stack: StackName): string | null {
  return needs !== undefined && needs !== stack ? `it needs --stack ${needs}` : (missing?.() ?? null);
}

function wanted(point: FaultPoint, step: Step, fixed: Fixed): boolean {
  if (kindsAt(point, step, fixed).length === 0) return false;
  const { only } = fixed;
  return only === undefined || only.includes(point.name) || only.includes(`${point.name}@${step}`);
}

/** A step that only soaks use runs if it is requested by name. */
function named(point: FaultPoint, only: readonly string[] = []): Step[] {
  return (point.soakSteps ?? []).filter((step) => only.includes(`${point.name}@${step}`));
}
