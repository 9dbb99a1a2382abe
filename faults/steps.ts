/** The steps of a turn as breakpoints of a worker. */
import {
  ALSO_READ,
  BACKGROUND,
  callerBelow,
  DELEGATE,
  ROLLING,
  type Step,
  type Story,
  TOOL,
  type ToolKind,
  TREE,
} from './story.ts';

/** The caller of a background sub-agent is about to store the part of its state that leaves the run. */
export const CALLER_SEALING = 'caller sealing';
/** A sub-agent in the background is about to report. The one below it has reported at another point. */
export const BACKGROUND_REPORTING = 'background reporting';
/** A sub-agent in the background has reported. */
export const BACKGROUND_REPORTED = 'background reported';

/** The breakpoint of a step, or `null` if no worker is held at the step. */
export function breakpointOf(step: Step, kind: ToolKind): string | null {
  const tool = TOOL[kind];
  switch (step) {
    case 'model-asked':
      return 'before model';
    case 'asking':
      return 'model request';
    case 'model-answered':
      return 'after model';
    case 'dispatched':
      return `before ${tool}`;
    case 'in-call':
      return `request ${tool}`;
    case 'reading':
      return kind === 'read' ? `request ${ALSO_READ}` : null;
    case 'gap':
      return `gap ${tool}`;
    case 'landed':
      return `landed ${tool}`;
    case 'returned':
      return `after ${tool}`;
    case 'attached':
      return kind === 'global' ? `after attach ${tool}` : null;
    case 'telling':
      return kind === 'global' ? 'before report' : null;
    case 'verifying':
      return `before verify ${tool}`;
    case 'verified':
      return `after verify ${tool}`;
    case 'sealing':
      return 'before storePast';
    case 'sealed':
      return 'after storePast';
    case 'rolling-over':
    case 'fetching':
    case 'child-decided':
    case 'report-carried':
      return step;
    case 'delegated':
      return `after attach ${DELEGATE.delegate}`;
    case 'child-running':
      return `landed ${tool}`;
    case 'child-done':
      return 'before report';
    case 'child-told':
      return 'after report';
    case 'parent-sealing':
      return 'before storePast';
    case 'background-started':
      return `after attach ${DELEGATE.launch}`;
    case 'background-running':
      return `landed ${tool}`;
    case 'background-done':
      return BACKGROUND_REPORTING;
    case 'background-told':
      return BACKGROUND_REPORTED;
    case 'report-queued':
      return CALLER_SEALING;
    case 'caller-ended':
      return 'after steer';
    case 'child-asks':
    case 'between-turns':
    case 'approval':
      return null;
    default:
      return step satisfies never;
  }
}

/** Which visit of a step's breakpoint, counted from 1, is the step in a turn. */
export function visitsOf(step: Step, turn: number): number {
  // The first request of all comes before any call, and the lowest session of a tree rolls over first.
  return step === 'asking' || step === 'parent-sealing' ? turn + 1 : turn;
}

/** Each turn ends a run. */
const ROLLING_ENV = { LAB_RUN_TURNS: '1', LAB_HOLD_RUNS: '1' };

/** The environment that the steps of a story need in its workers. */
export function envOf(story: Story): Record<string, string> {
  const { step } = story;
  if ([...ROLLING, ...TREE].includes(step)) return ROLLING_ENV;
  if (!BACKGROUND.includes(step)) return {};
  const atEnd: Record<string, string> = step === 'caller-ended' ? { LAB_AT_END: 'cancel' } : {};
  return { ...ROLLING_ENV, LAB_CALLER_DEPTH: String(2 - callerBelow(story)), ...atEnd };
}
