/** All sessions, newest first. The filters are in the address. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { SessionSummary } from '../contract/views.ts';
import { type Glance, useGlances } from './glances.ts';
import { go, linkTo, useRead } from './hooks.ts';
import { CommandLine, Empty, Problem, Status, Time } from './parts.tsx';
import { dollars, visible } from './text.ts';
import { useWindow } from './window.ts';

const EVERY_MS = 5_000;
/** How many sessions are shown: at first, and when somebody asks for more. */
const SHOWN = [100, 1_000, 10_000] as const;
const STATUSES = [
  ['', 'any status'],
  ['waits', 'waits for a person'],
  ['active', 'active'],
  ['paused', 'paused'],
  ['completed', 'completed'],
  ['cancelled', 'cancelled'],
  ['failed', 'failed'],
  ['terminated', 'terminated'],
] as const;
/** Filters that are typed: the parameter, and what the field says. */
const TYPED = [
  ['prefix', 'id begins with'],
  ['agent', 'agent'],
  ['tenant', 'tenant'],
] as const;

export function Sessions({ search }: { search: string }): JSX.Element {
  const filters = new URLSearchParams(search);
  const [size, setSize] = useState(0);
  const limit = SHOWN[size] ?? SHOWN[0];
  // A long list is not read again until the filters change.
  const everyMs = size === 0 ? EVERY_MS : undefined;
  const { value, error } = useRead<{ items: SessionSummary[] }>(
    `/sessions?limit=${limit}&${filters}`,
    everyMs,
  );
  const items = value?.items ?? [];
  const { box, body, seen, first, end, above, below } = useWindow(items.length);
  const shown = items.slice(first, end);
  const glances = useGlances(items.slice(seen.first, seen.end));
  const filter = (name: string, text: string): void => {
    const next = new URLSearchParams(search);
    if (text === '') next.delete(name);
    else next.set(name, text);
    go(`${linkTo({ name: 'sessions' })}?${next}`, true);
  };
  return (
    <main class="page" ref={box}>
      <h1 class="visually-hidden">Sessions</h1>
      <div class="filters">
        <select
          aria-label="Status"
          value={filters.get('status') ?? ''}
          onChange={(event) => filter('status', event.currentTarget.value)}
        >
          {STATUSES.map(([status, words]) => (
            <option key={status} value={status}>
              {words}
            </option>
          ))}
        </select>
        {TYPED.map(([name, words]) => (
          <TypedFilter
            key={name}
            words={words}
            text={filters.get(name) ?? ''}
            onText={(text) => filter(name, text)}
          />
        ))}
      </div>
      <Problem error={error} />
      {value !== null && items.length === 0 && (
        <Empty title={search === '' ? 'No sessions yet' : 'No session fits these filters'}>
          {search === '' ? (
            <CommandLine command="perdure start support 'Hello'" />
          ) : (
            <p>Filters look at ids, agents, tenants and statuses, not at what was said.</p>
          )}
        </Empty>
      )}
      {items.length > 0 && (
        <table class="sessions" aria-rowcount={items.length + 1}>
          <thead>
            <tr aria-rowindex={1}>
              <th scope="col">Session</th>
              <th scope="col">Agent</th>
              <th scope="col">Status</th>
              <th scope="col">Last answer</th>
              <th scope="col">Cost</th>
              <th scope="col">Tenant</th>
              <th scope="col">Started</th>
            </tr>
          </thead>
          <tbody ref={body}>
            <Spacer height={above} />
            {shown.map((session, index) => (
              <Row
                key={session.id}
                session={session}
                glance={glances.get(session.id)}
                rowIndex={first + index + 2}
              />
            ))}
            <Spacer height={below} />
          </tbody>
        </table>
      )}
      {items.length === limit && size + 1 < SHOWN.length && (
        <p>
          <button type="button" onClick={() => setSize(size + 1)}>
            Show up to {SHOWN[size + 1]?.toLocaleString('en')}
          </button>
        </p>
      )}
    </main>
  );
}

/**
 * A filter that applies when the typed text is entered. It keeps that text itself, because the list renders again while
 * somebody types.
 */
function TypedFilter({
  words,
  text,
  onText,
}: {
  words: string;
  text: string;
  onText: (text: string) => void;
}): JSX.Element {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  return (
    <input
      placeholder={words}
      aria-label={words}
      value={typed}
      onInput={(event) => setTyped(event.currentTarget.value)}
      onChange={(event) => onText(event.currentTarget.value.trim())}
    />
  );
}

function Row({
  session: { id, agent, status, tenant, startedAt },
  glance,
  rowIndex,
}: {
  session: SessionSummary;
  /** `undefined` until it is read. */
  glance: Glance | undefined;
  rowIndex: number;
}): JSX.Element {
  const text = glance?.lastText ?? '';
  return (
    <tr aria-rowindex={rowIndex}>
      <td>
        <a href={linkTo({ name: 'session', id })}>{visible(id)}</a>
      </td>
      <td>{visible(agent ?? '')}</td>
      <td>
        <Status status={status} />
      </td>
      <td class="hint" title={visible(text.slice(0, 1_000))}>
        {glance === null ? 'cannot be read' : visible(text.slice(0, 200))}
      </td>
      <td>{glance ? costOf(glance) : ''}</td>
      <td>{visible(tenant ?? '')}</td>
      <td>
        <Time at={startedAt} />
      </td>
    </tr>
  );
}

/** Dollars, or tokens where a model has no price. */
function costOf({ budget: { spent, unpriced } }: NonNullable<Glance>): string {
  if (unpriced.length === 0) return dollars(spent.usd);
  return `${(spent.inputTokens + spent.outputTokens).toLocaleString('en')} tokens`;
}

function Spacer({ height }: { height: number }): JSX.Element | null {
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row takes no focus.
  return height === 0 ? null : <tr class="spacer" aria-hidden="true" style={{ height: `${height}px` }} />;
}
