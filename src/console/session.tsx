/** One session: its live conversation, and details beside it. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { SessionView } from '../contract/views.ts';
import { command } from '../session/commands.ts';
import { useAct } from './acting.ts';
import { type Followed, useSession } from './follow.ts';
import { linkTo } from './hooks.ts';
import { CommandLine, Copy, Problem, Status } from './parts.tsx';
import { Past } from './past.tsx';
import { Queue } from './queue.tsx';
import { Part, Side } from './side.tsx';
import { Steer } from './steer.tsx';
import { visible } from './text.ts';
import { Conversation } from './transcript.tsx';

export function Session({ id }: { id: string }): JSX.Element {
  const { earlier, again, ...session } = useSession(id);
  const { view, error, live } = session;
  const [past, setPast] = useState(false);
  if (view === null)
    return (
      <main class="page">{error === null ? <p class="hint">Reading…</p> : <Problem error={error} />}</main>
    );
  const isActive = view.status.kind === 'active';
  // The page does not follow a session that has ended, until it continues.
  const onAgain = isActive ? undefined : again;
  return (
    <main class="session">
      <section class="talk" aria-label="Conversation">
        <header>
          <h1>
            <Copy text={id} />
          </h1>
          <p class="facts">
            <span>{visible(view.agent)}</span>
            <Status status={isActive ? view.phase : view.status.kind} />
            {view.parent !== undefined && (
              <span>
                {view.parent.path.map(visible).join(' › ')} › {visible(view.agent)}, started by{' '}
                <a href={linkTo({ name: 'session', id: view.parent.sessionId })}>
                  {visible(view.parent.sessionId)}
                </a>
              </span>
            )}
            <span>{live ? 'live' : isActive ? 'not live: reconnects' : ''}</span>
          </p>
          <Problem error={error} />
          <Waits view={view} />
        </header>
        <Talk session={session} earlier={earlier} />
        {isActive && <Queue sessionId={id} messages={session.queue} />}
        <Steer view={view} onAgain={onAgain} />
      </section>
      <aside class="side">
        <Side view={view} />
        <Part name="Checkpoints">
          {past ? (
            <Past id={id} onAgain={onAgain} />
          ) : (
            <button type="button" onClick={() => setPast(true)}>
              Show the checkpoints
            </button>
          )}
        </Part>
        <Part name="In a terminal">
          <CommandLine command={command('show', id)} />
          <CommandLine command={command('tail', id)} />
        </Part>
      </aside>
    </main>
  );
}

/** What the session waits for, and where to answer. */
function Waits({
  view: { sessionId, pending, wait, paused, status, sleeping, limited },
}: {
  view: SessionView;
}): JSX.Element | null {
  const lines = [
    ...pending.map(
      ({ tool, callId, status: { kind }, question }) =>
        question?.text ?? `${tool} (${callId}) ${kind === 'approval' ? 'waits for approval' : kind}`,
    ),
    ...(wait === null ? [] : [`${wait.reason}: ${wait.message}`]),
    ...(limited === undefined ? [] : [limited.message]),
    ...sleeping.map(({ callId, until, reason }) => `${callId} sleeps until ${until}: ${reason}`),
    ...(paused === null ? [] : [`paused by ${paused.by}${paused.reason === '' ? '' : `: ${paused.reason}`}`]),
    ...('message' in status ? [status.message] : []),
    ...('reason' in status ? [status.reason] : []),
  ].filter((line) => line !== '');
  if (lines.length === 0) return null;
  return (
    <ul class="waits">
      {lines.map((line) => (
        <li key={line}>{visible(line)}</li>
      ))}
      {(pending.length > 0 || wait !== null) && (
        <li>
          <a href={linkTo({ name: 'inbox', session: sessionId })}>Answer in the inbox</a>
        </li>
      )}
    </ul>
  );
}

/** The messages, and what the model writes now. The view stays at the end unless somebody scrolls away. */
function Talk({ session, earlier }: { session: Followed; earlier: () => Promise<void> }): JSX.Element {
  const { messages, first, calls, text, reasoning, view } = session;
  const { act, busy, error } = useAct();
  const agents = new Map(view?.children?.map(({ callId, sessionId }) => [callId, sessionId]));
  const box = useRef<HTMLElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    if (atEnd.current) box.current?.scrollTo({ top: box.current.scrollHeight });
  });
  return (
    <section
      ref={box}
      class="scroll"
      aria-label="Messages"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        atEnd.current = scrollHeight - scrollTop - clientHeight < 40;
      }}
    >
      {first > 0 && (
        <button type="button" disabled={busy} onClick={() => void act(earlier)}>
          {first.toLocaleString('en')} earlier messages
        </button>
      )}
      <Problem error={error} />
      <Conversation messages={messages} calls={calls} agents={agents} />
      {(text !== '' || reasoning !== '') && (
        <div class="assistant live" aria-live="polite">
          {reasoning !== '' && <div class="text hint">{visible(reasoning)}</div>}
          <div class="text">{visible(text)}</div>
        </div>
      )}
    </section>
  );
}
