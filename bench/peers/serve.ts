/**
 * The inside of a measured process. Like an application, it is both worker and client of one runtime. Messages tell it
 * what to run. It uses only Node, so that a peer may run on another version of Node.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync } from 'node:fs';
import { callArgs, replyText, toolText } from '../support/job.ts';

/** What a measured process gets at its start. Which addresses are set depends on what its peer needs. */
export interface Settings {
  /** A separate directory that lasts as long as the measurement. */
  dir: string;
  temporal?: string;
  taskQueue?: string;
  postgres?: string;
  restateIngress?: string;
  restateAdmin?: string;
  /** A port that the process may listen on. */
  port?: number;
  /** Which variant of a peer to run, such as a kind of tool. */
  variant?: string;
  /** A file to which every call is appended before it answers. */
  ledger?: string;
  /** The turn whose tool call never answers. */
  hangAt?: number;
  /**
   * The number of processes. This process starts the others, which are only workers. `gapMs` does not include them.
   * Default: 1.
   */
  workers?: number;
}

/** The messages of a measured process. */
export type Said =
  | { event: 'ready' }
  | { event: 'ran'; run: number; wallMs: number; gapMs: number }
  | { event: 'failed'; run: number; reason: string }
  /** The next two exist only if calls are logged. */
  | { event: 'model'; turn: number }
  | { event: 'tool'; turn: number };

/** A request to run sessions at once, or to resume those that a killed process has left. */
export type Asked = { run: number; sessions: readonly string[]; resume: boolean };

/** A runtime, as the bench drives it. */
export interface Peer {
  /** Runs a session to its last answer. */
  run(session: string): Promise<unknown>;
  /**
   * Waits for the end of a session that another process began. Makes the runtime continue if it does not do so by
   * itself.
   */
  resume(session: string): Promise<unknown>;
}

/** The work: the model and the tool that every peer calls. Both are in this process and answer at once. */
export interface Work {
  /** The reply of a turn (1, 2, …) and the argument of its tool call. After the last turn there is no call. */
  model(session: string, turn: number): { text: string; ref?: string };
  /** The tool's result. */
  tool(ref: string): Promise<string>;
  /** Whether the tool was called with this argument, as the provider of its effect would know. */
  happened(ref: string): boolean;
}

/** How many turns a session has: the end of its id. */
export function turnsOf(session: string): number {
  return Number(session.split('-').at(-1));
}

function say(message: Said): void {
  process.send?.(message);
}

/** Serves a peer until the process is ended. */
export async function serve(start: (work: Work, settings: Settings) => Promise<Peer>): Promise<void> {
  const settings = JSON.parse(process.argv[2] ?? '{}') as Settings;
  // The parent may be gone before this process is ready.
  process.on('disconnect', () => process.exit(0));
  const { ledger, hangAt, workers = 1 } = settings;
  await Promise.all(Array.from({ length: workers - 1 }, () => startAnother({ ...settings, workers: 1 })));
  const asked = new Map<string, number[]>();
  const note = (event: 'model' | 'tool', turn: number): void => {
    if (ledger === undefined) return;
    appendFileSync(ledger, `${event} ${turn}\n`);
    say({ event, turn });
  };
  const peer = await start(
    {
      model: (session, turn) => {
        const times = asked.get(session);
        // A repeated request does not begin a new turn.
        if (times !== undefined) times[turn] ??= performance.now();
        note('model', turn);
        const text = replyText(turn);
        return turn > turnsOf(session) ? { text } : { text, ref: callArgs(turn).ref };
      },
      tool: (ref) => {
        const turn = Number(ref.split('-')[1]);
        note('tool', turn);
        return turn === hangAt ? new Promise(() => {}) : Promise.resolve(toolText(ref));
      },
      happened: (ref) =>
        ledger !== undefined && readFileSync(ledger, 'utf8').includes(`tool ${ref.split('-')[1]}\n`),
    },
    settings,
  );

  /** The mean time from one model request to the next, without the start and end of the session. */
  const gap = (session: string): number => {
    const times = (asked.get(session) ?? []).slice(1);
    return ((times.at(-1) ?? 0) - (times[0] ?? 0)) / Math.max(1, times.length - 1);
  };
  process.on('message', (message) => {
    const { run, sessions, resume } = message as Asked;
    const started = performance.now();
    for (const session of sessions) asked.set(session, []);
    Promise.all(sessions.map((session) => (resume ? peer.resume(session) : peer.run(session)))).then(
      () => {
        const gapMs = sessions.reduce((sum, session) => sum + gap(session), 0) / sessions.length;
        for (const session of sessions) asked.delete(session);
        say({ event: 'ran', run, wallMs: performance.now() - started, gapMs });
      },
      (error: unknown) => say({ event: 'failed', run, reason: reasonOf(error) }),
    );
  });
  say({ event: 'ready' });
}

/** Starts this program once more; it ends with this process. Resolves when it is ready. */
async function startAnother(settings: Settings): Promise<void> {
  const child = fork(process.argv[1] ?? '', [JSON.stringify(settings)]);
  child.once('exit', (code, signal) => {
    console.error(`a worker ended with ${signal ?? code}`);
    process.exit(1);
  });
  await once(child, 'message');
}

function reasonOf(error: unknown): string {
  const words = new Set<string>();
  for (let each: unknown = error; each instanceof Error; each = each.cause) words.add(each.message);
  return [...words].join(': ') || String(error);
}
