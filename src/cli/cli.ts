/** One run of the command line: its connection, its terminal, and how it is interrupted. */
import { userInfo } from 'node:os';
import { createInterface } from 'node:readline';
import type { Client } from '@temporalio/client';
import type { Session, Sessions } from '../client/index.ts';
import { UNNAMED } from '../contract/calls.ts';
import { defined } from '../contract/json.ts';
import { DEFAULT_TASK_QUEUE } from '../contract/names.ts';
import type { ConnectedServer, ResolveServerOptions } from '../server/index.ts';
import { EXIT } from './failures.ts';
import { Terminal } from './terminal.ts';

/** Options that every verb takes. */
export interface GlobalOptions {
  address?: string;
  namespace?: string;
  taskQueue?: string;
  json?: true;
}

/** A connection and what is made with it. */
export interface Connected {
  server: ConnectedServer;
  client: Client;
  sessions: Sessions;
}

/** What verbs work with. Heavy modules are imported when they are needed: most verbs are done in half a second. */
export class Cli {
  readonly terminal: Terminal = new Terminal();
  /** The verb and the session that this run is about, to be named when it fails. */
  verb = '';
  sessionId: string | null = null;
  /** What to type when it is not known whether what was asked was done: it does it once. */
  repeat: string | null = null;
  #options: GlobalOptions = {};
  #connected: Promise<Connected> | null = null;
  readonly #interrupt = new AbortController();
  #graceful = false;

  constructor() {
    for (const stream of [process.stdout, process.stderr]) {
      // The reader has gone, as `head` does: there is nobody to tell.
      stream.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'EPIPE') process.exit(EXIT.ok);
        throw error;
      });
    }
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        // The second time it is meant.
        if (!this.#graceful || this.#interrupt.signal.aborted) process.exit(EXIT.interrupted);
        this.#interrupt.abort();
      });
    }
  }

  /** Takes what was typed before the verb's own arguments are read. */
  begin(verb: string, options: GlobalOptions): void {
    this.verb = verb;
    this.#options = options;
    this.terminal.json = options.json === true;
  }

  /** Where the verb looks for a server. */
  get serverOptions(): ResolveServerOptions {
    const { address } = this.#options;
    // The rest of the environment is for the server that it names.
    const namespace =
      this.#options.namespace ??
      (address === undefined ? undefined : process.env['TEMPORAL_NAMESPACE'] || undefined);
    return {
      ...defined({ address, namespace }),
    };
  }

  /** The task queue of sessions that are started and of workers. */
  get taskQueue(): string {
    return this.#options.taskQueue ?? (process.env['PERDURE_TASK_QUEUE'] || DEFAULT_TASK_QUEUE);
  }

  /** The task queue that was typed, where none means the one that a session has already. */
  get typedTaskQueue(): string | undefined {
    return this.#options.taskQueue;
  }

  /** Connects, once. @throws PerdureError `SERVER_UNAVAILABLE` */
  connect(options: ResolveServerOptions = {}): Promise<Connected> {
    this.#connected ??= this.#open({ ...this.serverOptions, ...options });
    return this.#connected;
  }

  async #open(options: ResolveServerOptions): Promise<Connected> {
    const [{ Client }, { Sessions }, { connect }] = await Promise.all([
      import('@temporalio/client'),
      import('../client/index.ts'),
      import('../server/index.ts'),
    ]);
    const server = await connect(options);
    const client = new Client({ connection: server.connection, namespace: server.namespace });
    return { server, client, sessions: new Sessions(client, { taskQueue: this.taskQueue }) };
  }

  /** The handle of the session that the verb is about. */
  async session(id: string): Promise<Session> {
    this.sessionId = id;
    return (await this.connect()).sessions.get(id);
  }

  /** From now on the first Ctrl-C or SIGTERM aborts this signal instead of ending the process. */
  untilInterrupted(): AbortSignal {
    this.#graceful = true;
    return this.#interrupt.signal;
  }

  /** Ends a verb that was asked to be graceful, as a signal would. */
  interrupt(): void {
    this.#interrupt.abort();
  }

  /** Whether somebody is here who can be asked. */
  get attended(): boolean {
    return process.stdin.isTTY && !this.terminal.json;
  }

  /** What a person answers to a question, on standard error. Ctrl-D is no word, and Ctrl-C ends everything. */
  async ask(question: string): Promise<string> {
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    const word = await new Promise<string>((resolve) => {
      terminal.once('close', () => resolve(''));
      terminal.once('SIGINT', () => void this.exit(EXIT.interrupted));
      terminal.question(question, resolve);
    });
    terminal.close();
    return word.trim();
  }

  /** What people do is done in the name of this person; without `--by`, in that of the system's user. */
  actor(by?: string): string {
    const named = by ?? process.env['USER'] ?? process.env['USERNAME'];
    if (named !== undefined && named !== '') return named;
    try {
      return userInfo().username;
    } catch {
      // A container may run as a user that has no name.
      return UNNAMED;
    }
  }

  /** Lets go of the server. */
  async close(): Promise<void> {
    const connected = await this.#connected?.catch(() => null);
    await connected?.server.close();
  }

  /** Ends the process when all that was written has been read. */
  async exit(code: number): Promise<never> {
    for (const stream of [process.stdout, process.stderr]) {
      await new Promise<void>((resolve) => void stream.write('', () => resolve()));
    }
    process.exit(code);
  }
}
