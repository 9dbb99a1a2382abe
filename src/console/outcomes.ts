/** What became of the decisions of this page, in words. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ToolCall } from '../contract/calls.ts';
import type { CallDetail, SessionView } from '../contract/views.ts';
import { request, sessionPath } from './api.ts';
import type { Decision } from './decided.tsx';
import { asApiError } from './hooks.ts';
import { readable, visible } from './text.ts';

/** An outcome that may change is read again after a tenth of the time since the decision, within these limits. */
const SOONEST_MS = 1_000;
const LATEST_MS = 15_000;
const TICK_MS = 500;

interface Outcome {
  words: string;
  isFinal: boolean;
  readAt: number;
}

type Outcomes = ReadonlyMap<Decision, Outcome>;

/**
 * Reads what became of decisions until each is final, while the page is seen. It has one request at a time: a browser opens
 * six connections to a server for all of its tabs, and the next decision needs one.
 */
export function useOutcomes(decisions: readonly Decision[]): Outcomes {
  const [known, setKnown] = useState<Outcomes>(new Map());
  const latest = useRef(known);
  useEffect(() => {
    const stop = new AbortController();
    const follow = async (): Promise<void> => {
      for (;;) {
        const next = document.visibilityState === 'visible' ? dueOf(decisions, latest.current) : undefined;
        const outcome = next && (await outcomeOf(next, latest.current.get(next), stop.signal));
        if (stop.signal.aborted) return;
        if (next !== undefined && outcome !== undefined) {
          latest.current = new Map(latest.current).set(next, outcome);
          setKnown(latest.current);
        } else await new Promise((resolve) => setTimeout(resolve, TICK_MS));
      }
    };
    void follow();
    return () => stop.abort();
  }, [decisions]);
  return known;
}

/** The decision to read next: one that was never read, or the one that was read longest ago. */
function dueOf(decisions: readonly Decision[], known: Outcomes): Decision | undefined {
  const now = Date.now();
  const readAt = (decision: Decision): number => known.get(decision)?.readAt ?? 0;
  const isDue = (decision: Decision): boolean => {
    const pause = Math.min(LATEST_MS, Math.max(SOONEST_MS, (now - Date.parse(decision.at)) / 10));
    return known.get(decision)?.isFinal !== true && now - readAt(decision) >= pause;
  };
  return decisions.filter(isDue).toSorted((a, b) => readAt(a) - readAt(b))[0];
}

const FINAL: ReadonlySet<string> = new Set(['completed', 'failed', 'skipped']);

async function outcomeOf(
  { item: { sessionId, call } }: Decision,
  before: Outcome | undefined,
  signal: AbortSignal,
): Promise<Outcome> {
  const read = <T>(rest: string): Promise<T> =>
    request('GET', sessionPath(sessionId, rest), undefined, signal);
  try {
    if (call === null) {
      const { phase } = await read<SessionView>('');
      const isFinal = phase === 'idle' || phase === 'closed';
      return { words: `now: ${phase}`, isFinal, readAt: Date.now() };
    }
    const now = (await read<CallDetail>(`/calls/${encodeURIComponent(call.callId)}`)).call;
    return { words: inWords(now), isFinal: FINAL.has(now.status.kind), readAt: Date.now() };
  } catch (error) {
    // The decision stands, whatever can be read of it. A session that lacks the call now has gone on without it.
    const isFinal = asApiError(error).status === 404;
    return { words: before?.words ?? 'recorded', isFinal, readAt: Date.now() };
  }
}

function inWords({ status, result, dispatches, approvers }: ToolCall): string {
  const said = result === null ? '' : `: ${readable(result.content).slice(0, 200)}`;
  switch (status.kind) {
    case 'completed':
      return `returned${said}`;
    case 'failed':
      return `failed${said}`;
    case 'skipped':
      return 'did not run; the model was told';
    case 'running':
      return `runs, dispatch ${dispatches.length}`;
    case 'approval':
      if (approvers !== undefined && approvers.given.length > 0)
        return `${approvers.given.length} of ${approvers.people} have approved`;
      return `waits for approval${status.problem === undefined ? '' : `: ${visible(status.problem)}`}`;
    default:
      return 'reason' in status ? `${status.kind}: ${visible(status.reason)}` : status.kind;
  }
}
