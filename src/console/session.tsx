/** One session. */
import type { JSX } from 'preact';
import type { SessionView } from '../contract/views.ts';
import { sessionPath } from './api.ts';
import { useRead } from './hooks.ts';
import { Problem, Status } from './parts.tsx';
import { visible } from './text.ts';

export function Session({ id }: { id: string; by: string }): JSX.Element {
  const { value, error } = useRead<SessionView>(sessionPath(id), 5_000);
  return (
    <main class="page">
      <h1>{visible(id)}</h1>
      <Problem error={error} />
      {value !== null && <Status status={value.phase} />}
    </main>
  );
}
