/** The life of a tool call, step by step. */
import type { JSX } from 'preact';
import type { Dispatch, ToolCall } from '../contract/calls.ts';
import { Time } from './parts.tsx';
import { readable, visible } from './text.ts';

interface Step {
  text: string;
  at: string | null;
  lost?: boolean;
}

/** What has happened to a call, oldest first. */
function stepsOf(call: ToolCall): Step[] {
  const { decision, approvers, answers = [], dispatches, resolutions, replayOf, status, completedAt } = call;
  const steps: Step[] = [];
  const decisions = (approvers?.given ?? []).filter(({ at }) => at !== decision?.at);
  for (const each of decision === null ? decisions : [...decisions, decision]) {
    const why = each.reason === undefined ? '' : `: ${each.reason}`;
    steps.push({
      text: `${PAST[each.decision] ?? each.decision} by ${each.by}${why}`,
      at: each.at,
    });
  }
  for (const { text, output, by, at } of answers)
    steps.push({ text: `asked: ${text} ${by} answered: ${readable(output)}`, at });
  for (const dispatch of dispatches) {
    steps.push({ text: dispatchText(dispatch), at: dispatch.at, lost: dispatch.outcome === 'unknown' });
    for (const { dispatchNo, outcome, by, at, reason } of resolutions) {
      if (dispatchNo !== dispatch.no) continue;
      steps.push({ text: `${by} says: ${outcome}${reason === undefined ? '' : `, ${reason}`}`, at });
    }
  }
  if (replayOf !== null)
    steps.push({ text: `not run: answered from the record of ${replayOf}`, at: completedAt });
  else if (completedAt !== null) steps.push({ text: status.kind, at: completedAt });
  else if (status.kind === 'sleeping')
    steps.push({ text: `sleeps: ${status.reason}. Until`, at: status.until });
  else if ('reason' in status) steps.push({ text: `${status.kind}: ${status.reason}`, at: null, lost: true });
  else if (status.kind !== 'approval') steps.push({ text: status.kind, at: null });
  if (call.compensatedBy !== undefined)
    steps.push({ text: `its effect is undone by ${call.compensatedBy}`, at: null });
  return steps;
}

const PAST: Readonly<Record<string, string>> = {
  approve: 'approved',
  edit: 'edited',
  reject: 'rejected',
  respond: 'answered',
  expired: 'expired, decided',
};

function dispatchText({ no, outcome, reason, attempts }: Dispatch): string {
  const repeated = attempts === undefined ? '' : `, ${attempts} attempts`;
  const why = reason === undefined ? '' : `: ${reason}`;
  return `dispatch ${no}${repeated}, ${outcome ?? 'in flight'}${why}`;
}

export function CallLife({ call }: { call: ToolCall }): JSX.Element | null {
  const steps = stepsOf(call);
  if (steps.length === 0) return null;
  return (
    <ol class="life" aria-label="What has happened">
      {steps.map(({ text, at, lost }, index) => (
        <li key={index} class={lost === true ? 'lost' : ''}>
          {visible(text)} {at !== null && <Time at={at} />}
        </li>
      ))}
    </ol>
  );
}
