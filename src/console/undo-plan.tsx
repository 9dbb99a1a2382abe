/** Shows what an undo would do, before somebody requests it. */
import type { JSX } from 'preact';
import type { UndoPlan, UndoStep } from '../contract/undo.ts';
import type { ApiError } from './api.ts';
import { Problem } from './parts.tsx';
import { readable, visible } from './text.ts';

/** The most characters of a value. */
const BRIEF = 200;

export function UndoList({ plan, error }: { plan: UndoPlan | null; error: ApiError | null }): JSX.Element {
  if (plan === null) return error === null ? <p class="hint">Reading…</p> : <Problem error={error} />;
  const stepsOf = (who: UndoStep['by']): UndoStep[] => plan.steps.filter(({ by }) => by === who);
  return (
    <>
      {plan.steps.length === 0 && <p>There is no effect to undo.</p>}
      <Steps title="Will be undone, in this order:" steps={stepsOf('tool')} />
      <Steps title="Stays, for no tool can undo it. A person has to look:" steps={stepsOf('person')} />
    </>
  );
}

function Steps({ title, steps }: { title: string; steps: readonly UndoStep[] }): JSX.Element | null {
  if (steps.length === 0) return null;
  return (
    <>
      <p>
        <strong>{title}</strong>
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a list that scrolls takes the focus, so that keys can scroll it */}
      <ol class="changes" tabIndex={0} aria-label={title}>
        {steps.map(({ callId, tool, args, output, reason, session }) => (
          <li key={`${session ?? ''} ${callId}`}>
            {visible(tool)} <code>{brief(args)}</code> → <code>{brief(output)}</code>
            {session !== undefined && <span class="hint"> by {visible(session)}</span>}
            {reason !== undefined && <span class="hint"> {visible(reason)}</span>}
          </li>
        ))}
      </ol>
    </>
  );
}

function brief(value: unknown): string {
  const text = readable(JSON.stringify(value));
  return text.length > BRIEF ? `${text.slice(0, BRIEF)}…` : text;
}
