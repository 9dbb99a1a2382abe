/** Reads a session, and follows it live. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ToolCall } from '../contract/calls.ts';
import type { Message } from '../contract/messages.ts';
import type { QueuedMessage } from '../contract/state.ts';
import type { Page, SessionView } from '../contract/views.ts';
import { type ApiError, events, request, type StreamEvent, sessionPath } from './api.ts';
import { asApiError, useSeen } from './hooks.ts';

/** The number of messages, or of calls, in a page. */
const PAGE = 50;
const AGAIN_MS = 2_000;

export interface Followed {
  view: SessionView | null;
  messages: readonly Message[];
  /** Index of the first message. */
  first: number;
  calls: ReadonlyMap<string, ToolCall>;
  /** The messages that wait for the end of the turn. */
  queue: readonly QueuedMessage[];
  /** The text so far of the message that is not recorded yet. */
  text: string;
  reasoning: string;
  error: ApiError | null;
  /** Whether the stream is connected. */
  live: boolean;
}

const NOTHING: Followed = {
  view: null,
  messages: [],
  first: 0,
  calls: new Map(),
  queue: [],
  text: '',
  reasoning: '',
  error: null,
  live: false,
};

/**
 * Follows a session until it ends. What it shows changes with each event of its stream. A hidden page has no stream, and goes
 * on from its cursor when it is seen again: a browser opens six connections to a server for all of its tabs.
 */
export function useSession(id: string): Followed & {
  earlier: () => Promise<void>;
  /** Follows the session again, after it ended and was continued. */
  again: () => void;
} {
  const [state, setState] = useState(NOTHING);
  const [round, setRound] = useState(0);
  const latest = useRef(state);
  latest.current = state;
  const cursor = useRef('');
  const seen = useSeen();

  // biome-ignore lint/correctness/useExhaustiveDependencies: each round follows the session anew
  useEffect(() => {
    if (!seen) return undefined;
    const stop = new AbortController();
    void follow(id, cursor, stop.signal, (change) => {
      if (!stop.signal.aborted) setState(change);
    });
    return () => {
      stop.abort();
      setState((now) => ({ ...now, live: false }));
    };
  }, [id, round, seen]);

  const earlier = async (): Promise<void> => {
    const { first, messages } = latest.current;
    const older = await readPage<Message>(id, 'transcript', first);
    const ids = new Set(messages.map((message) => message.id));
    const calls = await readPage<ToolCall>(id, 'calls', await callsBefore(id, latest.current.calls));
    setState((now) => ({
      ...now,
      first: older.first,
      messages: [...older.items.filter((message) => !ids.has(message.id)), ...now.messages],
      calls: new Map([...calls.items.map((call) => [call.id, call] as const), ...now.calls]),
    }));
  };
  return { ...state, earlier, again: () => setRound((before) => before + 1) };
}

/** After these events the session is read again: more has changed than they say. */
const READ_ANEW: ReadonlySet<string> = new Set(['transcript', 'run', 'end']);

type Change = (next: (now: Followed) => Followed) => void;

/** @param cursor - of the last event that is shown; empty when the session is to be read anew. */
async function follow(
  id: string,
  cursor: { current: string },
  signal: AbortSignal,
  change: Change,
): Promise<void> {
  while (!signal.aborted) {
    let isRead = cursor.current !== '';
    const since = isRead ? `&since=${encodeURIComponent(cursor.current)}` : '';
    try {
      for await (const event of events(sessionPath(id, `/stream?until=closed${since}`), signal)) {
        // The stream is open before the session is read, so no event is missed in between. The stream repeats what the
        // model has written so far, so that text begins empty.
        if (!isRead) change((now) => ({ ...now, text: '', reasoning: '' }));
        if (!isRead || READ_ANEW.has(event.event)) change(await present(id, signal));
        isRead = true;
        if (event.event === 'end') {
          cursor.current = '';
          return change((now) => ({ ...now, live: false }));
        }
        change((now) => ({ ...after(now, event), live: true, error: null }));
        if (event.cursor !== '') cursor.current = event.cursor;
      }
      if (!isRead) change(await present(id, signal));
      // The server has closed without `end`. The next request gets the rest.
      change((now) => ({ ...now, live: false }));
    } catch (error) {
      if (signal.aborted) return;
      const known = asApiError(error);
      // A rewind or the retention has removed what came after the cursor.
      if (known.code === 'CHECKPOINT_NOT_FOUND' && cursor.current !== '') {
        cursor.current = '';
        continue;
      }
      change((now) => ({ ...now, live: false, error: known }));
      if (known.status === 404 || known.status === 401 || known.status === 403) return;
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

/** Reads the session as it is now. */
async function present(id: string, signal: AbortSignal): Promise<(now: Followed) => Followed> {
  const [view, transcript, calls] = await Promise.all([
    request<SessionView>('GET', sessionPath(id), undefined, signal),
    readPage<Message>(id, 'transcript'),
    readPage<ToolCall>(id, 'calls'),
  ]);
  return ({ text, reasoning, queue }) => ({
    view,
    messages: transcript.items,
    first: transcript.first,
    calls: new Map(calls.items.map((call) => [call.id, call])),
    queue,
    text,
    reasoning,
    error: null,
    live: true,
  });
}

function readPage<T>(id: string, which: 'transcript' | 'calls', before?: number): Promise<Page<T>> {
  const rest = before === undefined ? '' : `&before=${before}`;
  return request('GET', sessionPath(id, `/${which}?limit=${PAGE}${rest}`));
}

/** How many calls there are before those that are known. */
async function callsBefore(id: string, known: ReadonlyMap<string, ToolCall>): Promise<number> {
  const { total } = await request<Page<ToolCall>>('GET', sessionPath(id, '/calls?limit=0'));
  return Math.max(0, total - known.size);
}

/** Applies an event. */
function after(now: Followed, { event, data }: StreamEvent): Followed {
  switch (event) {
    case 'text':
      return { ...now, text: now.text + String(data['text']) };
    case 'reasoning':
      return { ...now, reasoning: now.reasoning + String(data['text']) };
    case 'reset':
      return { ...now, text: '', reasoning: '' };
    case 'message': {
      const message = data as unknown as Message;
      const isAnswer = message.role === 'assistant';
      const messages = now.messages.some(({ id }) => id === message.id)
        ? now.messages
        : [...now.messages, message];
      return { ...now, messages, ...(isAnswer ? { text: '', reasoning: '' } : {}) };
    }
    case 'call': {
      const call = data['call'] as ToolCall;
      return { ...now, calls: new Map(now.calls).set(call.id, call) };
    }
    case 'queue':
      return { ...now, queue: data['queue'] as QueuedMessage[] };
    case 'phase':
      return { ...now, view: data['view'] as SessionView };
    case 'spent':
      return now.view === null
        ? now
        : { ...now, view: { ...now.view, budget: data['budget'] as SessionView['budget'] } };
    default:
      return now;
  }
}
