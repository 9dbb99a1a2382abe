/** A decision of this page, and what happened next. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ToolCall } from '../contract/calls.ts';
import type { InboxItem } from '../contract/inbox.ts';
import type { CallDetail } from '../contract/views.ts';
import { labelOf } from './answers.ts';
import { events, request, sessionPath } from './api.ts';
import { linkTo } from './hooks.ts';
import { Time } from './parts.tsx';
import { readable, visible } from './text.ts';

export interface Decision {
  key: string;
  item: InboxItem;
  answer: string;
  by: string;
  /** ISO 8601. */
  at: string;
}

const FINAL: ReadonlySet<string> = new Set(['completed', 'failed', 'skipped']);

export function Decided({ decision: { item, answer, by, at } }: { decision: Decision }): JSX.Element {
  const { sessionId, call } = item;
  const next = useNext(sessionId, call?.callId ?? null);
  return (
    <li>
      <span class="line">
        <strong>{labelOf(item, answer)}</strong>
        <span class="what">{visible(call?.question?.text ?? call?.tool ?? item.reason)}</span>
        <Time at={at} />
      </span>
      <span class="line hint">
        <span>{by === '' ? 'no name given' : `by ${visible(by)}`}</span>
        <a class="what" href={linkTo({ name: 'session', id: sessionId })}>
          {visible(sessionId)}
        </a>
      </span>
      <span class="next" role="status">
        {next}
      </span>
    </li>
  );
}

/** What became of a call, or of its session, in words; live until the call has ended. */
function useNext(sessionId: string, callId: string | null): string {
  const [next, setNext] = useState('recorded');
  useEffect(() => {
    const stop = new AbortController();
    const show = (call: ToolCall): void => {
      setNext(inWords(call));
      if (FINAL.has(call.status.kind)) stop.abort();
    };
    const follow = async (): Promise<void> => {
      const parts = events(sessionPath(sessionId, '/stream'), stop.signal);
      let isFirst = true;
      for await (const { event, data } of parts) {
        // Also show what happened before the stream began.
        if (isFirst && callId !== null) {
          const path = sessionPath(sessionId, `/calls/${encodeURIComponent(callId)}`);
          show((await request<CallDetail>('GET', path, undefined, stop.signal)).call);
        }
        isFirst = false;
        const call = data['call'] as ToolCall | undefined;
        if (event === 'call' && call?.id === callId) show(call);
        if (event === 'phase' && callId === null) setNext(`now: ${String(data['phase'])}`);
      }
    };
    // The decision stands, whatever becomes of this stream.
    follow().catch(() => undefined);
    return () => stop.abort();
  }, [sessionId, callId]);
  return next;
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
