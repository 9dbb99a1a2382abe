/** Finds the programs for the stack of docker-compose.yml without containers. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { isExecutable, onPath, pathFolders } from '../../bench/support/on-path.ts';
import { projectFile } from './project.ts';

const run = promisify(execFile);

/** The settings of docker-compose.yml that a stack without containers must share. */
export interface Compose {
  /** The version of the Temporal server. */
  readonly version: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Arguments of the database. */
  readonly postgres: readonly string[];
}

/** Reads the Temporal service of docker-compose.yml. */
export function readCompose(): Compose {
  const path = projectFile('docker-compose.yml');
  const { services } = parse(readFileSync(path, 'utf8')) as {
    services: {
      temporal: { image: string; environment: Record<string, string> };
      postgres: { command: string[] };
    };
  };
  const { image, environment } = services.temporal;
  return { version: image.split(':')[1] ?? '', environment, postgres: services.postgres.command.slice(1) };
}

/** Paths of programs. */
export interface Binaries {
  readonly server: string;
  readonly sql: string;
  readonly initdb: string;
  readonly postgres: string;
  readonly psql: string;
}

/** A program of the stack is missing. The message says what to install, and the lab and tests show it to people. */
export class MissingBinaryError extends Error {
  override readonly name = 'MissingBinaryError';
  readonly code = 'MISSING_BINARY';
}

/**
 * Finds the programs of a stack. Builds Temporal's own with Go if they are missing, which takes minutes, once.
 *
 * @param onProgress - called with progress messages of a build; `null` never builds
 * @throws MissingBinaryError with what to install.
 */
export async function findBinaries(onProgress: ((line: string) => void) | null): Promise<Binaries> {
  const postgres = findPostgres();
  const { version } = readCompose();
  const server = onPath(['temporal-server']);
  const sql = onPath(['temporal-sql-tool']);
  if (server !== undefined && sql !== undefined && (await isVersion(server, version)))
    return { server, sql, ...postgres };
  const cache = join(
    process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
    'perdure',
    `temporal-server-${version}`,
  );
  const built = { server: join(cache, 'server'), sql: join(cache, 'sql') };
  if (!existsSync(built.server) || !existsSync(built.sql)) await build(version, cache, onProgress);
  return { ...built, ...postgres };
}

/** The paths of PostgreSQL's programs. `initdb` is missing if only the client is installed. */
function findPostgres(): Pick<Binaries, 'initdb' | 'postgres' | 'psql'> {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...versions.map((each) => join(debian, each, 'bin')), ...pathFolders()];
  for (const folder of folders) {
    const [initdb, postgres, psql] = ['initdb', 'postgres', 'psql'].map((name) => join(folder, name));
    if (initdb === undefined || postgres === undefined || psql === undefined) continue;
    if ([initdb, postgres, psql].every(isExecutable)) return { initdb, postgres, psql };
  }
  throw new MissingBinaryError(
    'PostgreSQL is not here (initdb, postgres and psql, in /usr/lib/postgresql/*/bin or on PATH): install it, on Debian with `apt-get install postgresql`',
  );
}

async function build(
  version: string,
  cache: string,
  onProgress: ((line: string) => void) | null,
): Promise<void> {
  const packages = ['server', 'tools/sql'].map((each) => `go.temporal.io/server/cmd/${each}@v${version}`);
  const go = onPath(['go']);
  if (go === undefined || onProgress === null) {
    throw new MissingBinaryError(
      `temporal-server and temporal-sql-tool ${version} are not on PATH: put them there, or install Go, and they are built: go install ${packages.join(' ')}`,
    );
  }
  onProgress(`Building the Temporal server ${version} with Go, once; this takes some minutes`);
  await run(go, ['install', ...packages], { env: { ...process.env, GOBIN: cache } });
}

async function isVersion(server: string, version: string): Promise<boolean> {
  const { stdout } = await run(server, ['--version']);
  return stdout.includes(version);
}
