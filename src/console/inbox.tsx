/** Everything that waits for a person: the list, and the chosen item beside it. */
import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Inbox as InboxAnswer, InboxItem } from '../contract/inbox.ts';
import { Decided, type Decision } from './decided.tsx';
import { Detail } from './detail.tsx';
import { useRead } from './hooks.ts';
import { keyOf } from './item-key.ts';
import { isTyping } from './keys.ts';
import { useOutcomes } from './outcomes.ts';
import { CommandLine, Empty, Problem, Time } from './parts.tsx';
import { readable, visible } from './text.ts';

const EVERY_MS = 5_000;
/** What was decided stays out of the list for this time: a session goes on, and is listed as it is, a moment later. */
const HIDDEN_MS = 10_000;

const KINDS: Readonly<Record<InboxItem['kind'], string>> = {
  approval: 'approval',
  question: 'question',
  unknown: 'unknown outcome',
  stuck: 'tool is missing',
  budget: 'budget',
  wait: 'waits',
  unreadable: 'cannot be read',
};

interface Props {
  /** `session`: the session whose first item is chosen. */
  search: string;
  onCount: (count: number) => void;
}

/** What the detail shows. It stays when the list has the item no more, so that nobody answers another one by mistake. */
interface Chosen {
  item: InboxItem;
  /** The answer that is being given. */
  answer: string | null;
}

export function Inbox({ search, onCount }: Props): JSX.Element {
  const session = new URLSearchParams(search).get('session');
  const { value, error, again } = useRead<InboxAnswer>('/inbox', EVERY_MS);
  const [done, setDone] = useState<readonly Decision[]>([]);
  const outcomes = useOutcomes(done);
  const [chosen, setChosen] = useState<Chosen | null>(null);
  // On a phone, only the list or an item is visible.
  const [opened, setOpened] = useState(session !== null);
  const list = useRef<HTMLUListElement>(null);

  const settling = done.filter(({ at }) => Date.now() - Date.parse(at) < HIDDEN_MS);
  const hidden = new Set(settling.map(({ key }) => key));
  const items = (value?.items ?? []).filter((item) => !hidden.has(keyOf(item)));
  const first = items.find(({ sessionId }) => session === null || sessionId === session);
  const { item, answer } = chosen ?? { item: first, answer: null };
  const index = item === undefined ? -1 : items.findIndex((each) => keyOf(each) === keyOf(item));
  const present = useRef({ items, index, item });
  present.current = { items, index, item };

  useEffect(() => onCount(items.length), [items.length, onCount]);
  // What is shown without a choice stays, too, when something more urgent comes.
  useLayoutEffect(() => {
    if (chosen === null && first !== undefined) setChosen({ item: first, answer: null });
  }, [chosen, first]);

  const choose = (at: number): void => {
    const next = items[at];
    if (next === undefined) return;
    setChosen({ item: next, answer: null });
    list.current?.children[at]?.scrollIntoView({ block: 'nearest' });
  };

  const give = (answer: string | null): void => {
    if (item !== undefined) setChosen({ item, answer });
  };

  // Before the next event: a key right after a click is meant for what the click has shown.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') {
        if (answer === null) setOpened(false);
        else give(null);
        return;
      }
      if (answer !== null || isTyping(event)) return;
      if (event.key === 'j') choose(Math.min(index + 1, items.length - 1));
      else if (event.key === 'k') choose(Math.max(index - 1, 0));
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  });

  const finish = (decision: Decision): void => {
    setDone((before) => [decision, ...before].slice(0, 20));
    void again();
    // The person may have gone on to another item before this answer was recorded.
    const { items, index, item } = present.current;
    if (item === undefined || keyOf(item) !== decision.key) return;
    const next = items[index + 1] ?? items[index - 1];
    setChosen(next === undefined ? null : { item: next, answer: null });
    setOpened(false);
  };

  if (value === null)
    return (
      <main class="page">{error === null ? <p class="hint">Reading…</p> : <Problem error={error} />}</main>
    );
  return (
    <main class={`inbox ${opened ? 'opened' : ''}`}>
      <section class="list" aria-label="What waits">
        <Problem error={error} />
        {items.length === 0 && (
          <Empty title="Nothing waits for a person">
            <p>Approvals, unknown outcomes and spent budgets appear here. To see the same in a terminal:</p>
            <CommandLine command="perdure inbox" />
          </Empty>
        )}
        <ul ref={list}>
          {items.map((each, at) => (
            <li key={keyOf(each)}>
              <button
                type="button"
                class="row"
                aria-current={at === index ? 'true' : undefined}
                onClick={() => {
                  choose(at);
                  setOpened(true);
                }}
              >
                <Row item={each} />
              </button>
            </li>
          ))}
        </ul>
        {value.read < value.waiting && (
          <p class="hint">
            {value.waiting} sessions wait. These are from the {value.read} newest.
          </p>
        )}
        {done.length > 0 && (
          <>
            <h2>Decided</h2>
            <ul class="decided">
              {done.map((decision) => (
                <Decided
                  key={decision.key + decision.at}
                  decision={decision}
                  next={outcomes.get(decision)?.words ?? 'recorded'}
                />
              ))}
            </ul>
          </>
        )}
      </section>
      <section class="detail" aria-label="The chosen item">
        <button type="button" class="plain back" onClick={() => setOpened(false)}>
          ← All
        </button>
        {item === undefined ? (
          session !== null && <p class="hint">Nothing of {visible(session)} waits for a person.</p>
        ) : (
          <Detail
            key={keyOf(item)}
            item={items[index] ?? item}
            gone={index === -1}
            answer={answer}
            onAnswer={give}
            onDone={finish}
            onStale={again}
          />
        )}
      </section>
    </main>
  );
}

function Row({ item }: { item: InboxItem }): JSX.Element {
  const { sessionId, kind, call, agent, since, until, reason } = item;
  const hasArguments = call !== null && call.question === undefined;
  const { needs } = call ?? {};
  return (
    <>
      <span class="line">
        <strong class={hasArguments ? '' : 'attention'}>
          {visible(hasArguments ? call.tool : KINDS[kind])}
        </strong>
        <span class="what">{hasArguments ? readable(brief(call.args)) : visible(reason)}</span>
      </span>
      <span class="line hint">
        {hasArguments && (
          <span class={kind === 'approval' ? '' : 'attention'}>
            {KINDS[kind]}
            {needs !== undefined && ` ${needs.given.length} of ${needs.people}`}
          </span>
        )}
        <span class="what">
          {visible(sessionId)} · {visible(item.path?.join(' › ') ?? agent ?? '')}
        </span>
        {until === null ? (
          since !== null && <Time at={since} />
        ) : (
          <span class="due">
            expires <Time at={until} until />
          </span>
        )}
      </span>
    </>
  );
}

/** The values of some arguments in one line. */
function brief(args: unknown): string {
  if (typeof args !== 'object' || args === null) return JSON.stringify(args);
  return Object.values(args)
    .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
    .join(' · ')
    .slice(0, 200);
}
