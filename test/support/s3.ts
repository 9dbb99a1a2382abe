/** A real S3 server: the Versity S3 Gateway over a directory, from `PATH`, or built with Go once. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { S3 } from '@aws-sdk/client-s3';
import { onPath } from '../../bench/support/on-path.ts';
import { until } from '../../bench/support/until.ts';
import { cacheDir } from '../../src/server/cache-dir.ts';
import { freePort } from '../../src/server/server-process.ts';

const VERSION = '1.8.0';
const PROGRAM = 'versitygw';
const credentials = { accessKeyId: 'tester', secretAccessKey: 'a-secret-of-tests' };

const found = onPath([PROGRAM], [join(cacheDir(), `${PROGRAM}-${VERSION}`)]);

/** Whether there is neither the server nor a Go to build it with: `test.skipIf(NO_S3)`. */
export const NO_S3: boolean = found === undefined && !hasGo();

function hasGo(): boolean {
  try {
    execFileSync('go', ['version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** The path of the server. Building it takes some minutes. */
async function serverPath(): Promise<string> {
  if (found !== undefined) return found;
  const home = join(cacheDir(), `${PROGRAM}-${VERSION}`);
  const staging = await mkdtemp(`${home}-`);
  await promisify(execFile)('go', ['install', `github.com/versity/versitygw/cmd/${PROGRAM}@v${VERSION}`], {
    env: { ...process.env, GOBIN: staging, CGO_ENABLED: '0' },
  });
  await mkdir(home, { recursive: true });
  await rename(join(staging, PROGRAM), join(home, PROGRAM));
  await rm(staging, { recursive: true });
  return join(home, PROGRAM);
}

/** A server with one bucket. */
export interface S3Server {
  /** `s3://…?endpoint=…`. A path is the prefix of keys. */
  url(path?: string): string;
  readonly credentials: typeof credentials;
  /** A client of the server. */
  readonly s3: S3;
  readonly bucket: string;
  signal(signal: NodeJS.Signals): void;
  /** Kills it, and starts it again where it was. */
  kill(): Promise<void>;
  restart(): Promise<void>;
  /** Kills it and removes its data. */
  close(): Promise<void>;
}

export async function startS3(): Promise<S3Server> {
  const program = await serverPath();
  const folder = await mkdtemp(join(tmpdir(), 'perdure-s3-'));
  const [data, sidecar] = [join(folder, 'data'), join(folder, 'metadata')];
  await Promise.all([data, sidecar].map((each) => mkdir(each)));
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const { accessKeyId, secretAccessKey } = credentials;
  const at = ['--port', `127.0.0.1:${port}`, '--access', accessKeyId, '--secret', secretAccessKey, '--quiet'];
  const s3 = new S3({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials, maxAttempts: 1 });
  const launch = (): ChildProcess =>
    spawn(program, [...at, 'posix', '--sidecar', sidecar, data], { stdio: 'ignore' });
  const untilUp = (): Promise<unknown> =>
    until(() => s3.listBuckets().catch(() => undefined), { everyMs: 50, timeoutMs: 30_000 });
  let running = launch();
  const kill = async (): Promise<void> => {
    if (running.exitCode !== null || running.signalCode !== null) return;
    const exited = once(running, 'exit');
    running.kill('SIGKILL');
    await exited;
  };
  await untilUp();
  const bucket = 'perdure-values';
  await s3.createBucket({ Bucket: bucket });
  return {
    url: (path = '') => `s3://${bucket}/${path}?endpoint=${endpoint}`,
    credentials,
    s3,
    bucket,
    signal: (signal) => void running.kill(signal),
    kill,
    restart: async () => {
      running = launch();
      await untilUp();
    },
    close: async () => {
      await kill();
      s3.destroy();
      await rm(folder, { recursive: true });
    },
  };
}
