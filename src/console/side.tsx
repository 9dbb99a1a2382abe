/** Details of a session, beside its conversation. */
import type { ComponentChildren, JSX } from 'preact';
import type { BudgetView, SessionView } from '../contract/views.ts';
import { Copy, Time, Value } from './parts.tsx';
import { counted, dollars, span, visible } from './text.ts';

const CAPS = [
  ['usd', 'cost', dollars],
  ['tokens', 'tokens', (value: number) => value.toLocaleString('en')],
  ['turns', 'turns', String],
  ['toolCalls', 'tool calls', String],
  ['activeMs', 'active', span],
] as const;

const STEPS = { pending: '○ pending', in_progress: '◐ in progress', done: '● done' } as const;

export function Side({ view }: { view: SessionView }): JSX.Element {
  const { budget, plan, notices, context, models, runId, createdAt, turn, messages, calls, agentChanges } =
    view;
  const { scratchpad, reminders } = view;
  return (
    <>
      <Part name="Budget">
        <Budget budget={budget} />
        {budget.pool !== undefined && <p class="hint">shares the pool {visible(budget.pool.id)}</p>}
      </Part>
      {plan.length > 0 && (
        <Part name="Plan">
          <ol class="plan">
            {plan.map(({ id, title, status }) => (
              <li key={id}>
                <span class="hint">{STEPS[status]}</span> {visible(title)}
              </li>
            ))}
          </ol>
        </Part>
      )}
      {scratchpad.length > 0 && (
        <Part name="Scratchpad">
          <ul class="plan">
            {scratchpad.map(({ path, bytes }) => (
              <li key={path}>
                {visible(path)} <span class="hint">{counted(bytes, 'byte')}</span>
              </li>
            ))}
          </ul>
        </Part>
      )}
      {reminders.length > 0 && (
        <Part name="Reminders">
          <ul class="plan">
            {reminders.map(({ id, at, text }) => (
              <li key={id}>
                <Time at={at} until /> {visible(text)}
              </li>
            ))}
          </ul>
        </Part>
      )}
      {context !== null && Object.keys(context).length > 0 && (
        <Part name="Context">
          <Value value={context} />
        </Part>
      )}
      {notices.length > 0 && (
        <Part name="Notices">
          <ul class="notices">
            {notices.toReversed().map(({ at, kind, message }, index) => (
              <li key={index}>
                <span class="hint">
                  {visible(kind)} <Time at={at} />
                </span>{' '}
                {visible(message)}
              </li>
            ))}
          </ul>
        </Part>
      )}
      <Part name="Session">
        <p class="hint">
          {[counted(turn, 'turn'), counted(messages, 'message'), counted(calls, 'call')].join(' · ')}
          {agentChanges.length > 0 && ` · ${counted(agentChanges.length, 'change')} of the agent`}
        </p>
        <p class="hint">
          started <Time at={createdAt} />
        </p>
        <p class="hint">{models.map(visible).join(', ')}</p>
        <p class="hint">
          run <Copy text={runId} />
        </p>
      </Part>
    </>
  );
}

export function Part({ name, children }: { name: string; children: ComponentChildren }): JSX.Element {
  return (
    <section>
      <h2>{name}</h2>
      {children}
    </section>
  );
}

/** What was spent, with the caps. */
function Budget({ budget: { limits, spent } }: { budget: BudgetView }): JSX.Element {
  const used = {
    usd: spent.usd,
    tokens: spent.inputTokens + spent.outputTokens,
    turns: spent.turns,
    toolCalls: spent.toolCalls,
    activeMs: spent.activeMs,
  };
  return (
    <dl class="budget">
      {CAPS.map(([cap, name, shown]) => {
        const limit = limits[cap];
        const text = `${shown(used[cap])}${limit === undefined ? '' : ` of ${shown(limit)}`}`;
        return (
          <div key={cap}>
            <dt>{name}</dt>
            <dd>
              {text}
              {limit !== undefined && (
                <meter
                  aria-label={name}
                  min={0}
                  max={limit || 1}
                  high={limit * 0.8}
                  value={Math.min(used[cap], limit)}
                />
              )}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}
