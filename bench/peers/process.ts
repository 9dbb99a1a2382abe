/** A peer's process as the bench controls it: by messages, with its files and servers. */
import { fork } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Context } from '../support/context.ts';
import { Talk } from '../support/processes.ts';
import type { PeerSpec } from './catalogue.ts';
import { findNode, type Installed, install } from './install.ts';
import type { Asked, Said, Settings } from './serve.ts';
import type { Backing, Stack } from './stack.ts';

/** A peer that is installed and whose servers run. */
export interface Prepared {
  spec: PeerSpec;
  backing: Backing;
  versions: Record<string, string>;
  /** The directory that its processes share, one after the other. */
  dir: string;
  /** The program: what to fork. */
  file: string;
  node: string;
}

/** Installs what a peer needs and starts what it needs. @throws Error that says why it cannot run here. */
export async function prepare(spec: PeerSpec, stack: Stack, context: Context): Promise<Prepared> {
  let installed: Installed | undefined;
  if ('folder' in spec.at) installed = await install(spec.at.folder);
  const dir = await context.temporaryDir();
  const file =
    'file' in spec.at
      ? fileURLToPath(new URL(`${spec.at.file}.js`, import.meta.url))
      : join(installed?.folder ?? '', 'peer.mjs');
  return {
    spec,
    backing: await stack.backing(spec, installed, dir),
    versions: installed?.versions ?? {},
    dir,
    file,
    node: spec.node === undefined ? process.execPath : await findNode(spec.node, installed?.folder ?? ''),
  };
}

/** What a run took. */
export type Ran = Extract<Said, { event: 'ran' }>;

/** One process of a peer. */
export class PeerProcess extends Talk<Said> {
  readonly #log: string;
  #run = 0;

  constructor({ spec, backing, dir, file, node }: Prepared, extra: Partial<Settings> = {}) {
    const path = join(dir, `${spec.id}.log`);
    const log = openSync(path, 'a');
    const settings: Settings = {
      dir,
      ...(spec.variant === undefined ? {} : { variant: spec.variant }),
      ...(spec.workers === undefined ? {} : { workers: spec.workers }),
      ...backing.settings,
      ...extra,
    };
    const child = fork(file, [JSON.stringify(settings)], {
      execPath: node,
      execArgv: [],
      env: { ...process.env, NODE_ENV: 'production', LANGSMITH_TRACING: 'false' },
      stdio: ['ignore', log, log, 'ipc'],
    });
    closeSync(log);
    super('its process', child);
    this.#log = path;
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Starts the sessions at once and waits for all. @throws Error with the reason of the first failed session. */
  async run(sessions: readonly string[], { resume = false }: { resume?: boolean } = {}): Promise<Ran> {
    const run = ++this.#run;
    this.child.send({ run, sessions, resume } satisfies Asked);
    return this.said('ran', (message) => message.run === run);
  }

  protected override check(message: Said): void {
    if (message.event === 'failed' && message.run === this.#run)
      throw new Error(message.reason.slice(0, 300));
  }

  protected override last(): string {
    return `: ${readFileSync(this.#log, 'utf8').trim().slice(-300)}`;
  }
}
