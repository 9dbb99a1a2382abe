/** What measures share: a tuned server over a file, workers on it, and one long session. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SESSION_SEARCH_ATTRIBUTES, type ServerHandle, startServer } from '../../src/server/index.ts';
import type { Line } from './report.ts';
import { openScene, type Run, type Scene } from './scene.ts';

/** Takes figures and returns their lines. */
export type Measure = (context: Context) => Promise<Line[]>;

/** Each part is made when it is first asked for, and ended with the run. */
export class Context {
  readonly quick: boolean;
  readonly #closing: (() => Promise<unknown>)[] = [];
  #server: Promise<ServerHandle> | undefined;
  #scene: Promise<Scene> | undefined;
  #long: Promise<Run> | undefined;

  constructor(options: { quick: boolean }) {
    this.quick = options.quick;
  }

  /** The embedded server, tuned, over a file. */
  server(): Promise<ServerHandle> {
    this.#server ??= (async () => {
      const dir = await this.temporaryDir();
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

  /** A directory that goes with the run. */
  async temporaryDir(): Promise<string> {
    const dir = await mkdtemp(join(tmpdir(), 'perdure-bench-'));
    this.onClose(() => rm(dir, { recursive: true, force: true }));
    return dir;
  }

  /** Last made, first ended. */
  onClose(end: () => Promise<unknown>): void {
    this.#closing.unshift(end);
  }

  async close(): Promise<void> {
    for (const end of this.#closing) await end();
  }
}
