/**
 * Details that a list shows beside the summary of each session. They are read for the visible rows, a few at a time.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { SessionSummary, SessionView } from '../contract/views.ts';
import { request, sessionPath } from './api.ts';

const AT_ONCE = 4;
/** An open session is read again when its status has changed, and after this time. */
const FRESH_MS = 30_000;

/** A session at a glance. `null`: it could not be read. */
export type Glance = Pick<SessionView, 'lastText' | 'budget' | 'turn'> | null;

interface Known {
  glance: Glance;
  status: string;
  at: number;
}

/** What is known of these sessions. */
export function useGlances(seen: readonly SessionSummary[]): ReadonlyMap<string, Glance> {
  const [known, setKnown] = useState<ReadonlyMap<string, Known>>(new Map());
  const wanted = useRef(seen);
  const latest = useRef(known);
  const reading = useRef(new Set<string>());
  wanted.current = seen;
  latest.current = known;

  const readNext = async (): Promise<void> => {
    const next = wanted.current.find(
      (session) => !reading.current.has(session.id) && isStale(session, latest.current.get(session.id)),
    );
    if (next === undefined || reading.current.size >= AT_ONCE) return;
    const { id, status } = next;
    reading.current.add(id);
    const glance = await request<SessionView>('GET', sessionPath(id)).catch(() => null);
    reading.current.delete(id);
    latest.current = new Map(latest.current).set(id, { glance, status, at: Date.now() });
    setKnown(latest.current);
  };
  // Each glance that arrives causes a render, which starts the next read.
  useEffect(() => {
    for (let n = reading.current.size; n < AT_ONCE; n++) void readNext();
  });
  useEffect(
    () => () => {
      wanted.current = [];
    },
    [],
  );
  return new Map([...known].map(([id, { glance }]) => [id, glance]));
}

function isStale({ status, closedAt }: SessionSummary, known: Known | undefined): boolean {
  if (known === undefined || known.status !== status) return true;
  return closedAt === null && Date.now() - known.at > FRESH_MS;
}
