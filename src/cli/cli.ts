/** One run of the command line: its connection, its terminal, its interrupts. */
import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Client } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import type { Session, Sessions } from '../client/index.ts';
import { UNNAMED } from '../contract/calls.ts';
import { messageOf, PerdureError } from '../contract/errors.ts';
import { defined } from '../contract/json.ts';
import type { LiveChannel } from '../contract/live-text.ts';
import { DEFAULT_TASK_QUEUE } from '../contract/names.ts';
import type { ValueStore } from '../contract/values.ts';
import type { ConnectedServer, ResolveServerOptions } from '../server/index.ts';
import { EXIT } from './failures.ts';
import { Terminal } from './terminal.ts';

/** Where the values are when the dev server of this directory runs. */
export const OWN_VALUES = '.perdure/values';

export interface GlobalOptions {
  address?: string;
  namespace?: string;
  taskQueue?: string;
  dataConverter?: string;
  json?: true;
}

export interface Connected {
  server: ConnectedServer;
  client: Client;
  sessions: Sessions;
  /** The store of values, if there is one. */
  values: ValueStore | undefined;
  /** The live channel, if there is one. */
  live: LiveChannel | undefined;
}

/** What verbs work with. Heavy modules are imported on demand: most verbs take half a second. */
export class Cli {
  readonly terminal: Terminal = new Terminal();
  /** The verb and the session, for error messages. */
  verb = '';
  sessionId: string | null = null;
  /** The command that safely repeats an unanswered request. */
  repeat: string | null = null;
  #options: GlobalOptions = {};
  #connected: Promise<Connected> | null = null;
  #dataConverter: Promise<{ dataConverter?: DataConverter }> | null = null;
  readonly #interrupt = new AbortController();
  #graceful = false;

  constructor() {
    for (const stream of [process.stdout, process.stderr]) {
      // The reader has closed the pipe, as `head` does.
      stream.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'EPIPE') process.exit(EXIT.ok);
        throw error;
      });
    }
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        // The second interrupt ends the process.
        if (!this.#graceful || this.#interrupt.signal.aborted) process.exit(EXIT.interrupted);
        this.#interrupt.abort();
      });
    }
  }

  /** Takes the global options, before the verb's own arguments are read. */
  begin(verb: string, options: GlobalOptions): void {
    this.verb = verb;
    this.#options = options;
    this.terminal.json = options.json === true;
  }

  get serverOptions(): ResolveServerOptions {
    const { address } = this.#options;
    // With an address, `resolveServer` ignores the environment. Only its namespace still applies.
    const namespace =
      this.#options.namespace ??
      (address === undefined ? undefined : process.env['TEMPORAL_NAMESPACE'] || undefined);
    return {
      ...defined({ address, namespace }),
    };
  }

  /** The task queue of new sessions and of workers. */
  get taskQueue(): string {
    return this.#options.taskQueue ?? (process.env['PERDURE_TASK_QUEUE'] || DEFAULT_TASK_QUEUE);
  }

  /** The task queue that was typed. Without one, a session keeps its own. */
  get typedTaskQueue(): string | undefined {
    return this.#options.taskQueue;
  }

  /** The module of the data converter: from the option, or from the environment. */
  get dataConverterModule(): string | undefined {
    const named = this.#options.dataConverter ?? (process.env['PERDURE_DATA_CONVERTER'] || undefined);
    return named === undefined ? undefined : resolve(named);
  }

  /**
   * The data converter of all clients and workers. It is loaded once.
   *
   * @throws PerdureError `INVALID_ARGUMENT`, `INVALID_DEFINITION`
   */
  dataConverter(
    onFile: (file: string) => void = () => undefined,
  ): Promise<{ dataConverter?: DataConverter }> {
    this.#dataConverter ??= this.#loadConverter(onFile);
    return this.#dataConverter;
  }

  async #loadConverter(onFile: (file: string) => void): Promise<{ dataConverter?: DataConverter }> {
    const module = this.dataConverterModule;
    if (module === undefined) return {};
    const { loadDataConverter } = await import('./load-data-converter.ts');
    return { dataConverter: await loadDataConverter(module, onFile) };
  }

  /** Connects, once; after a failure it tries again. @throws PerdureError `SERVER_UNAVAILABLE` */
  connect(options: ResolveServerOptions = {}): Promise<Connected> {
    this.#connected ??= this.#open({ ...this.serverOptions, ...options }).catch((error: unknown) => {
      this.#connected = null;
      throw error;
    });
    return this.#connected;
  }

  async #open(options: ResolveServerOptions): Promise<Connected> {
    const [{ Client }, { Sessions }, { connect }] = await Promise.all([
      import('@temporalio/client'),
      import('../client/index.ts'),
      import('../server/index.ts'),
    ]);
    // Load these first: an error in the module or in PERDURE_LIVE must not leave a connection behind.
    const converter = await this.dataConverter();
    const live = await this.#live();
    const server = await connect(options);
    const { connection, namespace } = server;
    const client = new Client({ connection, namespace, ...converter });
    const values = await this.#values(server.source === 'embedded');
    const sessions = new Sessions(client, { taskQueue: this.taskQueue, values, live });
    return { server, client, sessions, values, live };
  }

  /** The store of values: PERDURE_VALUES, or the directory beside the dev server's data. */
  async #values(embedded: boolean): Promise<ValueStore | undefined> {
    const place = process.env['PERDURE_VALUES'] || (embedded ? OWN_VALUES : undefined);
    if (place === undefined) return undefined;
    const { openValues } = await import('../values/index.ts');
    return openValues(place);
  }

  /** The live channel: PERDURE_LIVE. @throws PerdureError `INVALID_ARGUMENT` */
  async #live(): Promise<LiveChannel | undefined> {
    const url = process.env['PERDURE_LIVE'] || undefined;
    if (url === undefined) return undefined;
    const { RedisLiveChannel } = await import('../live/index.ts');
    try {
      return new RedisLiveChannel(url);
    } catch (error) {
      throw new PerdureError('INVALID_ARGUMENT', `PERDURE_LIVE: ${messageOf(error)}`, { cause: error });
    }
  }

  async session(id: string): Promise<Session> {
    this.sessionId = id;
    return (await this.connect()).sessions.get(id);
  }

  /** From now on the first Ctrl-C or SIGTERM aborts this signal, and the second ends the process. */
  untilInterrupted(): AbortSignal {
    this.#graceful = true;
    return this.#interrupt.signal;
  }

  /** Ends a graceful verb, as a signal would. */
  interrupt(): void {
    this.#interrupt.abort();
  }

  /** Whether a person can be asked. */
  get attended(): boolean {
    return process.stdin.isTTY && !this.terminal.json;
  }

  /** Asks a question on standard error. Ctrl-D is an empty answer, Ctrl-C ends the process. */
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

  /** Who acts: `--by`, or the system's user. */
  actor(by?: string): string {
    const named = by ?? process.env['USER'] ?? process.env['USERNAME'];
    if (named !== undefined && named !== '') return named;
    try {
      return userInfo().username;
    } catch {
      // A container's user may have no name.
      return UNNAMED;
    }
  }

  async close(): Promise<void> {
    const connected = await this.#connected?.catch(() => null);
    connected?.live?.close();
    await connected?.server.close();
  }

  /** Ends the process after all output was written. */
  async exit(code: number): Promise<never> {
    for (const stream of [process.stdout, process.stderr]) {
      await new Promise<void>((resolve) => void stream.write('', () => resolve()));
    }
    process.exit(code);
  }
}
