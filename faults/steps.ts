/** The steps of a turn as breakpoints of a worker. */
import { ALSO_READ, DELEGATE, type Step, TOOL, type ToolKind } from './story.ts';

/** Where a worker is held for a step, or `null` where no worker is. */
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
      return step;
    case 'delegated':
      return `after attach ${DELEGATE[2]}`;
    case 'child-running':
      return `landed ${tool}`;
    case 'child-done':
      return 'before report';
    case 'child-told':
      return 'after report';
    case 'parent-sealing':
      return 'before storePast';
    case 'child-asks':
    case 'between-turns':
    case 'approval':
      return null;
    default:
      return step satisfies never;
  }
}
