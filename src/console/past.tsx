/** The checkpoints of a session: what has changed between two of them, and how to continue from one. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { type Change, diff } from '../checkpoints/diff.ts';
import type { Checkpoint } from '../contract/checkpoint.ts';
import { command } from '../session/commands.ts';
import { useAct, useDraftId } from './acting.ts';
import { request, sessionPath } from './api.ts';
import { asApiError, go, linkTo, useRead } from './hooks.ts';
import { CommandLine, Problem, Time } from './parts.tsx';
import { readable, visible } from './text.ts';
import { useYou } from './you.ts';

/** Checkpoints hold whole states, so a page has few of them. */
const PAGE = 10;
/** The most changes that are shown. */
const CHANGES = 200;

interface CheckpointPage {
  items: Checkpoint[];
  next: string | null;
}

interface Effect {
  callId: string;
  tool: string;
  again: 'answered' | 'doubtful' | 'repeated' | 'undone';
  args: unknown;
}

const AGAIN: Readonly<Record<Effect['again'], string>> = {
  answered: 'an equal call gets its recorded result',
  doubtful: 'nobody knows whether it happened: a person decides about an equal call',
  repeated: 'an equal call runs again, because it is idempotent',
  undone: 'it was undone: an equal call runs again, with another key',
};

interface Props {
  id: string;
  /** Set for a session that has ended. Called when it continues. */
  onAgain: (() => void) | undefined;
}

export function Past({ id, onAgain }: Props): JSX.Element {
  const [before, setBefore] = useState<string | null>(null);
  const [marked, setMarked] = useState<readonly Checkpoint[]>([]);
  const rest = before === null ? '' : `&before=${encodeURIComponent(before)}`;
  const path = `/threads/${encodeURIComponent(id)}/checkpoints?limit=${PAGE}${rest}`;
  const { value, error } = useRead<CheckpointPage>(path);

  const olderPage = value?.next ?? null;

  const mark = (checkpoint: Checkpoint): void => {
    const isMarked = marked.some((each) => each.id === checkpoint.id);
    setMarked(
      isMarked ? marked.filter((each) => each.id !== checkpoint.id) : [...marked, checkpoint].slice(-2),
    );
  };
  const [older, newer] = marked.toSorted((a, b) => (a.created_at < b.created_at ? -1 : 1));
  return (
    <div class="past">
      <p class="hint">Choose one to go on from it, or two to see what has changed.</p>
      <Problem error={error} />
      <ul>
        {value?.items.map((checkpoint) => (
          <li key={checkpoint.id}>
            <label class="line">
              <input
                type="checkbox"
                checked={marked.some((each) => each.id === checkpoint.id)}
                onChange={() => mark(checkpoint)}
              />
              <span class="what">{titleOf(checkpoint)}</span>
              <Time at={checkpoint.created_at} />
            </label>
          </li>
        ))}
      </ul>
      <p class="answers">
        {before !== null && (
          <button type="button" onClick={() => setBefore(null)}>
            Newest
          </button>
        )}
        {olderPage !== null && (
          <button type="button" onClick={() => setBefore(olderPage)}>
            Older
          </button>
        )}
      </p>
      {older !== undefined && newer !== undefined && <Difference from={older} to={newer} />}
      {older !== undefined && newer === undefined && (
        <GoOn key={older.id} id={id} checkpoint={older} onAgain={onAgain} />
      )}
      <CommandLine command={command('checkpoints', 'ls', id)} />
    </div>
  );
}

function titleOf({ state, metadata }: Checkpoint): string {
  const { turn, transcript } = state;
  const last = Array.isArray(transcript) ? (transcript.at(-1) as { role?: string } | undefined) : undefined;
  const by = typeof metadata['by'] === 'string' ? ` · edited by ${metadata['by']}` : '';
  return visible(
    `turn ${JSON.stringify(turn)} · ${last?.role === undefined ? 'empty' : `after ${last.role}`}${by}`,
  );
}

function Difference({ from, to }: { from: Checkpoint; to: Checkpoint }): JSX.Element {
  const changes = diff(from, to);
  return (
    <section class="panel" aria-label="What has changed">
      <p>
        {changes.length} changes, from <Time at={from.created_at} /> to <Time at={to.created_at} />
      </p>
      <ul class="changes">
        {changes.slice(0, CHANGES).map((change) => (
          <li key={change.path}>
            <code>{visible(change.path)}</code> {inWords(change)}
          </li>
        ))}
      </ul>
      {changes.length > CHANGES && <p class="hint">{changes.length - CHANGES} more</p>}
      <CommandLine command={command('checkpoints', 'diff', from.thread_id, from.id, to.id)} />
    </section>
  );
}

function inWords(change: Change): string {
  const brief = (value: unknown): string => {
    const text = readable(JSON.stringify(value));
    return text.length > 200 ? `${text.slice(0, 200)}…` : text;
  };
  switch (change.op) {
    case 'add':
      return `+ ${brief(change.value)}`;
    case 'remove':
      return `− ${brief(change.before)}`;
    default:
      return `${brief(change.before)} → ${brief(change.value)}`;
  }
}

/** Forks or rewinds. A rewind says first which effects stay. */
function GoOn({ id, checkpoint, onAgain }: Props & { checkpoint: Checkpoint }): JSX.Element {
  const { signature, lacks } = useYou();
  const refusal = lacks('operate');
  const [reason, setReason] = useState('');
  const [message, setMessage] = useState('');
  const [effects, setEffects] = useState<readonly Effect[] | null>(null);
  const { act, busy, error } = useAct();
  const body = {
    checkpointId: checkpoint.id,
    reason,
    ...signature,
    ...(message === '' ? {} : { message: { text: message } }),
  };
  const options = [
    ...(message === '' ? [] : ['--message', message]),
    ...(reason === '' ? [] : ['--reason', reason]),
  ];

  const forkId = `session-${useDraftId(JSON.stringify(body))}`;
  const fork = (): Promise<void> =>
    act(async () => {
      try {
        await request('POST', sessionPath(id, '/fork'), { ...body, id: forkId });
      } catch (error) {
        // An earlier attempt, whose answer was lost, has made it.
        if (asApiError(error).code !== 'SESSION_EXISTS') throw error;
      }
      go(linkTo({ name: 'session', id: forkId }));
    });
  const rewind = (how: { confirm?: true; undo?: true } = {}): Promise<void> =>
    act(async () => {
      try {
        await request('POST', sessionPath(id, '/rewind'), { ...body, ...how });
      } catch (error) {
        const { details } = asApiError(error);
        // Without a confirmation nothing happens, and the error lists the effects.
        if (how.confirm === true || details['field'] !== 'confirm') throw error;
        setEffects((details['effects'] ?? []) as Effect[]);
        return;
      }
      setEffects(null);
      onAgain?.();
    });
  const cannot = busy || reason === '' || refusal !== null;
  return (
    <form class="panel" aria-label="Go on from this checkpoint" onSubmit={(event) => event.preventDefault()}>
      <label class="field">
        <span>Reason</span>
        <input required value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      <label class="field">
        <span>
          Message to go on with<small> optional</small>
        </span>
        <textarea rows={2} value={message} onInput={(event) => setMessage(event.currentTarget.value)} />
      </label>
      {effects === null ? (
        <div class="answers">
          <button type="button" disabled={cannot} onClick={() => void fork()}>
            Fork into a new session
          </button>
          <button type="button" disabled={cannot} onClick={() => void rewind()}>
            Rewind this session…
          </button>
        </div>
      ) : (
        <>
          <p>
            <strong>
              {effects.length === 0
                ? 'No effect has happened since.'
                : `A rewind undoes none of these ${effects.length} effects:`}
            </strong>
          </p>
          <ul class="changes">
            {effects.map(({ callId, tool, args, again }) => (
              <li key={callId}>
                {visible(tool)} <code>{readable(JSON.stringify(args))}</code>: {AGAIN[again]}
              </li>
            ))}
          </ul>
          <div class="answers">
            <button
              type="button"
              class="primary"
              disabled={cannot}
              onClick={() => void rewind({ confirm: true })}
            >
              Confirm: rewind
            </button>
            {effects.some(({ again }) => again !== 'undone') && (
              <button
                type="button"
                title="Effects whose tools can are undone first, each once a person has approved it."
                disabled={cannot}
                onClick={() => void rewind({ confirm: true, undo: true })}
              >
                Rewind and undo
              </button>
            )}
            <button type="button" onClick={() => setEffects(null)}>
              Back
            </button>
          </div>
        </>
      )}
      {refusal !== null && <p class="hint">{refusal}</p>}
      <Problem error={error} />
      <CommandLine command={command('checkpoints', 'fork', id, checkpoint.id, ...options)} />
      <CommandLine command={command('checkpoints', 'rewind', id, checkpoint.id, ...options)} />
    </form>
  );
}
