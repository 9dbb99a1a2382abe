/** What an undo would do, as text. */
import type { UndoPlan, UndoStep } from '../contract/undo.ts';
import { clean, inline } from './terminal.ts';

/** The most characters of a value. */
const BRIEF = 200;

export function planOfUndo({ steps }: UndoPlan): string[] {
  const [own, others] = (['tool', 'person'] as const).map((by) => steps.filter((step) => step.by === by));
  if (steps.length === 0) return ['There is no effect to undo.'];
  return [
    ...section('To be undone, in this order:', own),
    ...section('Not undone, for no tool can. A person has to look:', others),
  ];
}

function section(title: string, steps: readonly UndoStep[] = []): string[] {
  return steps.length === 0 ? [] : [title, ...steps.map(line)];
}

function line({ callId, tool, args, output, reason, session }: UndoStep): string {
  const why = reason === undefined ? '' : `  (${clean(reason)})`;
  const by = session === undefined ? '' : ` of ${clean(session)}`;
  return `  ${clean(tool)} ${inline(args, BRIEF)} -> ${inline(output, BRIEF)}  [${clean(callId)}${by}]${why}`;
}
