/** Follows a session's stream. */
import type { Session, StreamPart } from '../client/index.ts';
import type { ToolCall } from '../contract/calls.ts';
import { isUnanswered, PerdureError } from '../contract/errors.ts';
import { textsOf } from '../contract/messages.ts';
import type { SessionView } from '../contract/views.ts';
import { command } from '../session/commands.ts';
import { callNews } from './calls.ts';
import type { Cli } from './cli.ts';
import { EXIT } from './failures.ts';
import { needs, nextOf } from './render.ts';
import { clean } from './terminal.ts';

/** How long a working session may send no part before we ask whether a worker has it, in milliseconds. */
const SILENT_MS = 5_000;

export interface FollowOptions {
  /** The cursor after which the stream begins. */
  since?: string;
  /** Without a cursor: the number of past messages that are shown first. */
  messages?: number;
  /** End when the session waits for somebody, not when it closes. */
  once: boolean;
}

export type Followed = Pick<Session, 'state' | 'stream' | 'transcript' | 'ping'>;

/** Shows a session live. Returns its last view, or `null` after an interrupt. */
export async function follow(
  cli: Pick<Cli, 'terminal' | 'untilInterrupted'>,
  session: Followed,
  { since, messages = 0, once }: FollowOptions,
): Promise<SessionView | null> {
  const signal = cli.untilInterrupted();
  const show = new Printer(cli);
  let view: SessionView | null = null;
  const parts = session.stream({ since, until: once ? 'rest' : 'closed', signal });
  const watch = new Watch(cli, session, once);
  watch.heard(null);
  // Ctrl-C waits for no answer.
  const interrupted = new Promise<null>((resolve) => {
    signal.addEventListener('abort', () => resolve(null), { once: true });
  });
  try {
    while (!signal.aborted) {
      const next = await Promise.race([parts.next(), watch.failed, interrupted]);
      if (next === null || next.done === true) break;
      const part = next.value;
      if (part.type === 'phase') {
        if (view === null)
          for (const past of await pastMessages(session, part.view, messages)) show.part(past);
        view = part.view;
      }
      watch.heard(view);
      show.part(part);
    }
  } finally {
    watch.stop();
    // Not awaited: the part that it waits for may come late.
    void parts.return(undefined).catch(() => undefined);
  }
  if (signal.aborted) {
    show.breakLine();
    return null;
  }
  if (view === null) {
    // Nothing has changed since the cursor.
    view = await session.state();
    show.part({ type: 'phase', phase: view.phase, view, cursor: '' });
  }
  return view;
}

async function pastMessages(session: Followed, view: SessionView, count: number): Promise<StreamPart[]> {
  if (count === 0) return [];
  const { items } = await session.transcript({ before: view.messages, limit: count });
  return items.flatMap(({ id, role, blocks }): StreamPart[] => {
    const text = textsOf({ blocks }).join('');
    return text === '' ? [] : [{ type: 'message', id, role, text, blocks, cursor: '' }];
  });
}

/** Notices when a session that works is silent because no worker has it. */
class Watch {
  /** Rejects when there is no worker and the command must end. */
  readonly failed: Promise<never>;
  #fail: (error: unknown) => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;
  #isTold = false;
  readonly #cli: Pick<Cli, 'terminal'>;
  readonly #session: Followed;
  readonly #once: boolean;

  constructor(cli: Pick<Cli, 'terminal'>, session: Followed, once: boolean) {
    this.#cli = cli;
    this.#session = session;
    this.#once = once;
    this.failed = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.failed.catch(() => undefined);
  }

  /** Called for each part. Restarts the wait while the session works. */
  heard(view: SessionView | null): void {
    this.stop();
    this.#isTold = false;
    const works = view === null || ['starting', 'thinking', 'acting', 'cancelling'].includes(view.phase);
    if (works) this.#wait();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #wait(): void {
    this.#timer = setTimeout(() => void this.#ask(), SILENT_MS);
  }

  async #ask(): Promise<void> {
    const timer = this.#timer;
    try {
      await this.#session.ping();
    } catch (error) {
      if (timer !== this.#timer) return;
      if (this.#once && isUnanswered(error)) return this.#fail(error);
      if (!this.#isTold) this.#cli.terminal.progress('no worker answers; waiting for one');
      this.#isTold = true;
    }
    if (timer === this.#timer) this.#wait();
  }
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
        if (part.role !== 'assistant' || part.text === '') return;
        if (!this.#open) terminal.write(clean(part.text));
        this.#open = true;
        this.breakLine();
        return;
      case 'notice':
        this.note(`${clean(part.notice.kind)}: ${clean(part.notice.message)}`);
        return;
      case 'call':
        this.breakLine();
        for (const line of callNews(part.call, this.#calls.get(part.call.id))) terminal.progress(line);
        this.#calls.set(part.call.id, part.call);
        return;
      case 'phase': {
        this.note(part.phase);
        const todo = needs(part.view, terminal);
        if (todo !== '') terminal.write(`${todo}\n`);
        return;
      }
      // Phases and calls show these already, or nobody needs them at a terminal.
      case 'reasoning':
      case 'tool_input':
      case 'approval':
      case 'wait':
      case 'pause':
      case 'queue':
      case 'spent':
      case 'closed':
        return;
      case 'run':
        if (part.cause !== 'continued') this.note(`the session was ${part.cause}`);
        return;
      case 'transcript':
        this.note(`the messages from ${part.from} on are replaced`);
        return;
      default:
        part satisfies never;
    }
  }

  note(text: string): void {
    this.breakLine();
    this.#cli.terminal.progress(`· ${text}`);
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
export async function followToRest(cli: Cli, session: Session, since: string): Promise<void> {
  const view = await follow(cli, session, { since, once: true });
  if (view === null) process.exitCode = EXIT.interrupted;
  if (view?.wait?.reason !== 'agent_unavailable') return;
  const next = command('resume', view.sessionId);
  throw new PerdureError('UNKNOWN_AGENT', `${view.wait.message}. To look for it at once: ${next}`, {
    details: { agent: view.agent, sessionId: view.sessionId },
  });
}
