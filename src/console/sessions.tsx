/** All sessions, newest first. The filters are in the address. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import type { SessionSummary } from '../contract/views.ts';
import { go, linkTo, useRead } from './hooks.ts';
import { CommandLine, Empty, Problem, Status, Time } from './parts.tsx';
import { visible } from './text.ts';

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

export function Sessions({ search }: { search: string }): JSX.Element {
  const filters = new URLSearchParams(search);
  const [size, setSize] = useState(0);
  const limit = SHOWN[size] ?? SHOWN[0];
  // A long list is read once, and again when somebody looks for something else.
  const everyMs = size === 0 ? EVERY_MS : undefined;
  const { value, error } = useRead<{ items: SessionSummary[] }>(
    `/sessions?limit=${limit}&${filters}`,
    everyMs,
  );
  const filter = (name: string, text: string): void => {
    const next = new URLSearchParams(search);
    if (text === '') next.delete(name);
    else next.set(name, text);
    go(`${linkTo({ name: 'sessions' })}?${next}`, true);
  };
  const items = value?.items ?? [];
  return (
    <main class="page">
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
        {(['agent', 'tenant'] as const).map((name) => (
          <input
            key={name}
            placeholder={name}
            aria-label={name}
            value={filters.get(name) ?? ''}
            onChange={(event) => filter(name, event.currentTarget.value.trim())}
          />
        ))}
      </div>
      <Problem error={error} />
      {value !== null && items.length === 0 && (
        <Empty title={search === '' ? 'No sessions yet' : 'No session fits these filters'}>
          {search === '' && <CommandLine command="perdure start support 'Hello'" />}
        </Empty>
      )}
      {items.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Session</th>
              <th scope="col">Agent</th>
              <th scope="col">Status</th>
              <th scope="col">Tenant</th>
              <th scope="col">Started</th>
            </tr>
          </thead>
          <tbody>
            {items.map(({ id, agent, status, tenant, startedAt }) => (
              <tr key={id}>
                <td>
                  <a href={linkTo({ name: 'session', id })}>{visible(id)}</a>
                </td>
                <td>{visible(agent ?? '')}</td>
                <td>
                  <Status status={status} />
                </td>
                <td>{visible(tenant ?? '')}</td>
                <td>
                  <Time at={startedAt} />
                </td>
              </tr>
            ))}
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
