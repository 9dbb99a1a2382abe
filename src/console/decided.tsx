/** A decision of this page, and what happened next. */
import type { JSX } from 'preact';
import type { InboxItem } from '../contract/inbox.ts';
import { labelOf } from './answers.ts';
import { linkTo } from './hooks.ts';
import { Time } from './parts.tsx';
import { visible } from './text.ts';

export interface Decision {
  key: string;
  item: InboxItem;
  answer: string;
  by: string;
  /** ISO 8601. */
  at: string;
}

interface Props {
  decision: Decision;
  /** What became of it, in words. */
  next: string;
}

export function Decided({ decision: { item, answer, by, at }, next }: Props): JSX.Element {
  const { sessionId, call } = item;
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
