/** Follows a session's stream, also while the session waits. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Session, StreamPart } from '../client/index.ts';
import type { ToolCall } from '../contract/calls.ts';
import { isUnanswered, PerdureError } from '../contract/errors.ts';
import type { SessionView } from '../contract/views.ts';
import { command } from '../session/commands.ts';
import { callNews } from './calls.ts';
import type { Cli } from './cli.ts';
import { EXIT } from './failures.ts';
import { needs, nextOf } from './render.ts';
import { clean } from './terminal.ts';

/** Pause between two reads of a waiting session, in milliseconds. */
const LOOK_MS = 300;

export interface FollowOptions {
  /** The number of messages that were shown already. */
  from: number;
  /** End when the session waits for somebody, not when it closes. */
  once: boolean;
}

export type Followed = Pick<Session, 'state' | 'stream' | 'transcript'>;

/** Shows a session live. Returns its last view, or `null` after an interrupt. */
export async function follow(
  cli: Pick<Cli, 'terminal' | 'untilInterrupted'>,
  session: Followed,
  options: FollowOptions,
): Promise<SessionView | null> {
  const signal = cli.untilInterrupted();
  const show = new Printer(cli);
  let view: SessionView | null = null;
  const all = parts(cli, session, options, signal);
  // A session without a worker answers late. Ctrl-C does not wait for it.
  const interrupted = new Promise<null>((resolve) => {
    signal.addEventListener('abort', () => resolve(null), { once: true });
  });
  while (!signal.aborted) {
    const next = await Promise.race([all.next(), interrupted]);
    if (next === null || next.done === true) break;
    if (next.value.type === 'phase') view = next.value.view;
    show.part(next.value);
  }
  if (signal.aborted) {
    show.breakLine();
    return null;
  }
  return view;
}

/** One stream without gaps: messages that were recorded between two looks come from the transcript. */
async function* parts(
  cli: Pick<Cli, 'terminal'>,
  session: Followed,
  { from, once }: FollowOptions,
  signal: AbortSignal,
): AsyncGenerator<StreamPart> {
  const shown = new Set<string>();
  let cursor = from;
  let rest = '';
  let waiting = false;
  let partial = false;
  const missed = async (): Promise<StreamPart[]> => {
    const { total } = await session.transcript({ limit: 0 });
    const page = await session.transcript({ before: total, limit: Math.max(0, total - cursor) });
    cursor = total;
    return page.items.flatMap(({ id, role, blocks }): StreamPart[] => {
      const text = blocks.flatMap((block) => (block.kind === 'text' ? [block.text] : [])).join('');
      if (role !== 'assistant' || text === '' || shown.has(id)) return [];
      shown.add(id);
      return [{ type: 'message', id, text }];
    });
  };
  while (!signal.aborted) {
    try {
      yield* await missed();
      let last: SessionView | null = null;
      for await (const part of session.stream({ signal })) {
        if (part.type === 'message') {
          partial = false;
          if (shown.has(part.id)) continue;
          shown.add(part.id);
        }
        if (part.type === 'text') partial = true;
        if (part.type === 'phase') {
          last = part.view;
          // Messages that came before the stream began.
          if (last.messages > cursor) yield* await missed();
          const now = restOf(part.view);
          if (now === rest) continue;
          rest = now;
        }
        yield part;
      }
      yield* await missed();
      waiting = false;
      if (once || last?.phase === 'closed') return;
      while (!signal.aborted) {
        await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
        const view = await session.state();
        if (restOf(view) !== rest || view.messages > cursor || view.queued > 0) break;
      }
    } catch (error) {
      // A worker that restarts is no reason to stop.
      if (once || signal.aborted || !isUnanswered(error)) throw error;
      // The partial answer comes again, from the transcript or from a new attempt.
      if (partial) yield { type: 'reset' };
      partial = false;
      if (!waiting) cli.terminal.progress('no worker answers; waiting for one');
      waiting = true;
    }
  }
}

/** What a session waits for. When it changes, it is shown again. */
function restOf({ phase, pending, wait }: SessionView): string {
  return JSON.stringify([
    phase,
    pending.map(({ callId, argsDigest, status }) => [callId, argsDigest, status]),
    wait?.since,
  ]);
}

/** Writes parts as JSON, as live text on a terminal, or as whole messages. */
class Printer {
  readonly #cli: Pick<Cli, 'terminal'>;
  #open = false;
  readonly #calls = new Map<string, ToolCall>();

  constructor(cli: Pick<Cli, 'terminal'>) {
    this.#cli = cli;
  }

  part(part: StreamPart): void {
    const { terminal } = this.#cli;
    if (terminal.json) {
      terminal.item(part.type === 'phase' ? { ...part, commands: nextOf(part.view) } : part, () => null);
      return;
    }
    switch (part.type) {
      case 'text':
        if (!terminal.live) return;
        terminal.write(clean(part.text));
        this.#open = true;
        return;
      case 'reset':
        if (!this.#open) return;
        this.breakLine();
        terminal.progress('the model call is repeated');
        return;
      case 'message':
        if (!this.#open) terminal.write(clean(part.text));
        this.#open = true;
        this.breakLine();
        return;
      case 'notice':
        this.breakLine();
        terminal.progress(`· ${clean(part.notice.kind)}: ${clean(part.notice.message)}`);
        return;
      case 'call':
        this.breakLine();
        for (const line of callNews(part.call, this.#calls.get(part.call.id))) terminal.progress(line);
        this.#calls.set(part.call.id, part.call);
        return;
      case 'phase': {
        this.breakLine();
        terminal.progress(`· ${part.phase}`);
        const todo = needs(part.view, terminal);
        if (todo !== '') terminal.write(`${todo}\n`);
        return;
      }
      default:
        part satisfies never;
    }
  }

  breakLine(): void {
    if (this.#open) this.#cli.terminal.write('\n');
    this.#open = false;
  }
}

/**
 * Follows a session until it waits or closes. Sets the exit code after an interrupt.
 *
 * @throws PerdureError `UNKNOWN_AGENT` when no worker has its agent.
 */
export async function followToRest(cli: Cli, session: Session, from: number): Promise<void> {
  const view = await follow(cli, session, { from, once: true });
  if (view === null) process.exitCode = EXIT.interrupted;
  if (view?.wait?.reason !== 'agent_unavailable') return;
  const next = command('resume', view.sessionId);
  throw new PerdureError('UNKNOWN_AGENT', `${view.wait.message}. To look for it at once: ${next}`, {
    details: { agent: view.agent, sessionId: view.sessionId },
  });
}
