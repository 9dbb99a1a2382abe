/** Shared by the measures: a tuned server over a file, workers on it, and one long session. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SESSION_SEARCH_ATTRIBUTES, type ServerHandle, startServer } from '../../src/server/index.ts';
import { endProcesses } from './processes.ts';
import type { Line } from './report.ts';
import { openScene, type Run, type Scene } from './scene.ts';

/** Takes measurements and returns their lines. */
export type Measure = (context: Context) => Promise<Line[]>;

/** Each part starts at its first use and ends with the run. */
export class Context {
  readonly quick: boolean;
  /** Turns of the session that `long` measures. `undefined`: all. */
  readonly turns: number | undefined;
  /** Ids of the peers to compare. `undefined`: all. */
  readonly peers: readonly string[] | undefined;
  /** Versions of other packages that a measure uses, for the result file. */
  versions: Record<string, string> = {};
  readonly #closing: (() => Promise<unknown>)[] = [];
  #server: Promise<ServerHandle> | undefined;
  #serverDir: Promise<string> | undefined;
  #scene: Promise<Scene> | undefined;
  #long: Promise<Run> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: {
    quick: boolean;
    turns?: number | undefined;
    peers?: readonly string[] | undefined;
  }) {
    this.quick = options.quick;
    this.turns = options.turns;
    this.peers = options.peers;
  }

  /** The embedded server, tuned, over a file. */
  server(): Promise<ServerHandle> {
    this.#server ??= (async () => {
      const dir = await this.serverDir();
      const server = await startServer({
        dir,
        searchAttributes: SESSION_SEARCH_ATTRIBUTES,
        onProgress: (line) => console.error(line),
      });
      this.onClose(() => server.stop());
      return server;
    })();
    return this.#server;
  }

  /** The directory of the server's database. */
  serverDir(): Promise<string> {
    this.#serverDir ??= this.temporaryDir();
    return this.#serverDir;
  }

  /** Workers of both sides on that server, in this process. */
  scene(): Promise<Scene> {
    this.#scene ??= (async () => {
      const scene = await openScene((await this.server()).address);
      this.onClose(() => scene.close());
      return scene;
    })();
    return this.#scene;
  }

  /** A finished session of more than 500 turns and 10,000 events (fewer in a quick run). */
  longSession(): Promise<Run> {
    this.#long ??= this.scene().then((scene) => scene.runOurs('mutate', this.quick ? 120 : 840));
    return this.#long;
  }

  /** A directory that is removed with the run. */
  async temporaryDir(): Promise<string> {
    if (this.#closed !== undefined) throw new Error('The bench is being ended');
    const dir = await mkdtemp(join(tmpdir(), 'perdure-bench-'));
    this.onClose(() => rm(dir, { recursive: true, force: true, maxRetries: 5 }));
    return dir;
  }

  /** Registers work for the end of the run. The last registered runs first. */
  onClose(end: () => Promise<unknown>): void {
    this.#closing.unshift(end);
  }

  /** Ends everything, even if a part fails to end. Further calls do nothing more. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await endProcesses();
    // Parts that are still opening would stay otherwise.
    await Promise.allSettled([this.#server, this.#scene]);
    for (let end = this.#closing.shift(); end !== undefined; end = this.#closing.shift()) {
      await end().catch((error: unknown) => console.error(error));
    }
  }
}
