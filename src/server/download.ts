/** Downloads the Temporal CLI. The archive is compared with a pinned SHA-256 before it is unpacked. */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { chmod, rm } from 'node:fs/promises';
import * as http from 'node:http';
import * as https from 'node:https';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import * as tls from 'node:tls';
import { promisify } from 'node:util';
import type { Environment } from './cache-dir.ts';

/**
 * The Temporal CLI that is downloaded or built; its dev server is Temporal 1.29. Later tags cannot be installed by Go.
 */
export const TEMPORAL_CLI_VERSION = '1.5.1';
/** The folder in the cache. Its last number goes up when this version is built in a new way. */
export const TEMPORAL_CACHE_NAME: string = `temporal-${TEMPORAL_CLI_VERSION}-2`;

/** The SHA-256 of each archive of that release. A new version needs new ones, from its `checksums.txt`. */
const SHA256: Readonly<Record<string, string>> = {
  'linux_amd64.tar.gz': 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d',
  'linux_arm64.tar.gz': 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5',
  'darwin_amd64.tar.gz': 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9',
  'darwin_arm64.tar.gz': 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415',
  'windows_amd64.zip': 'd3b7982a15f3e5716d55a304f18465f625c144f154e52ac45dcfe288eb642eb3',
  'windows_arm64.zip': '28e7cf32d7fa41d7b2daf4803ebd76897ceb1c1ba5094939e3f0edd119da0f4d',
};

const RELEASES = 'https://github.com/temporalio/cli/releases/download';

/** After this time without a byte, assume that there is no internet and stop waiting. */
const IDLE_MS = 15_000;
const DOWNLOAD_MS = 5 * 60_000;
const MAX_REDIRECTS = 5;

/** Inputs of a download or build, which puts the executable into `dir`. */
export interface BinaryRequest {
  readonly dir: string;
  readonly env: Environment;
  readonly onProgress: (line: string) => void;
}

/** An archive that holds `temporal`, or `temporal.exe`. */
export interface Archive {
  readonly url: string;
  readonly sha256: string;
}

/**
 * The archive for this platform, from GitHub or from the mirror that `PERDURE_TEMPORAL_MIRROR` names.
 *
 * @throws Error when Temporal publishes none for the platform
 */
export function archiveFor(env: Environment): Archive {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  const name = `${system}_${arch}.${system === 'windows' ? 'zip' : 'tar.gz'}`;
  const sha256 = SHA256[name];
  if (sha256 === undefined) throw new Error(`there is no download for ${system} on ${arch}`);
  const base = (env['PERDURE_TEMPORAL_MIRROR'] || RELEASES).replace(/\/+$/, '');
  return { url: `${base}/v${TEMPORAL_CLI_VERSION}/temporal_cli_${TEMPORAL_CLI_VERSION}_${name}`, sha256 };
}

/**
 * Downloads the archive, compares its SHA-256, and unpacks the executable into `dir`. Uses the proxy that
 * `HTTPS_PROXY` names.
 *
 * @returns the path of the executable
 * @throws Error when the server cannot be reached, or the archive is not the pinned one; then nothing was unpacked
 */
export async function download(
  { dir, env, onProgress }: BinaryRequest,
  { url, sha256 }: Archive = archiveFor(env),
): Promise<string> {
  onProgress(`downloading Temporal CLI ${TEMPORAL_CLI_VERSION} from ${url}`);
  const archive = join(dir, 'archive');
  const found = await fetchTo(archive, url, env, onProgress);
  if (found !== sha256) {
    await rm(archive);
    throw new Error(`${url} has SHA-256 ${found}, but ${sha256} is expected. It was not unpacked`);
  }
  const name = process.platform === 'win32' ? 'temporal.exe' : 'temporal';
  // The `tar` of Windows reads zip files, too.
  await promisify(execFile)('tar', ['-xf', archive, '-C', dir, name]);
  await chmod(join(dir, name), 0o700);
  return join(dir, name);
}

/** @returns the SHA-256 of what was written to the file */
async function fetchTo(
  file: string,
  url: string,
  env: Environment,
  onProgress: BinaryRequest['onProgress'],
): Promise<string> {
  const signal = AbortSignal.timeout(DOWNLOAD_MS);
  const hash = createHash('sha256');
  let [bytes, shown] = [0, performance.now()];
  try {
    const response = await get(new URL(url), env, signal);
    const measured = async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      for await (const chunk of chunks) {
        hash.update(chunk);
        bytes += chunk.byteLength;
        if (performance.now() - shown > 2_000) {
          shown = performance.now();
          onProgress(`downloading Temporal CLI ${TEMPORAL_CLI_VERSION}: ${Math.round(bytes / 1e6)} MB`);
        }
        yield chunk;
      }
    };
    await pipeline(response, measured, createWriteStream(file, { mode: 0o600 }), { signal });
  } catch (cause) {
    const reason = signal.aborted
      ? `it took more than ${DOWNLOAD_MS / 60_000} minutes`
      : (cause as Error).message;
    throw new Error(`${url} cannot be downloaded: ${reason}`, { cause });
  }
  return hash.digest('hex');
}

/** A successful response, after redirects. */
async function get(url: URL, env: Environment, signal: AbortSignal, hops = 0): Promise<http.IncomingMessage> {
  const secure = url.protocol === 'https:';
  const proxy = secure && (env['HTTPS_PROXY'] || env['https_proxy']);
  const socket = proxy ? await tunnel(new URL(proxy), url, signal) : undefined;
  const request = (secure ? https : http).get(url, {
    signal,
    agent: false,
    ...(socket && { createConnection: () => tls.connect({ socket, servername: url.hostname }) }),
  });
  const [response] = (await once(stopWhenIdle(request), 'response')) as [http.IncomingMessage];
  const { statusCode = 0, headers } = response;
  if (statusCode === 200) return response;
  response.destroy();
  if (statusCode < 300 || statusCode >= 400 || headers.location === undefined) {
    throw new Error(`the server answered ${statusCode}`);
  }
  if (hops === MAX_REDIRECTS) throw new Error('too many redirects');
  return get(new URL(headers.location, url), env, signal, hops + 1);
}

/** A connection to the host through a proxy. */
async function tunnel(proxy: URL, { hostname, port }: URL, signal: AbortSignal): Promise<tls.TLSSocket> {
  const { username, password } = proxy;
  const user = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`);
  const request = (proxy.protocol === 'https:' ? https : http).request(proxy, {
    method: 'CONNECT',
    path: `${hostname}:${port || 443}`,
    headers: username === '' ? {} : { 'proxy-authorization': `Basic ${user.toString('base64')}` },
    signal,
    agent: false,
  });
  stopWhenIdle(request).end();
  const [{ statusCode }, socket] = (await once(request, 'connect')) as [http.IncomingMessage, tls.TLSSocket];
  if (statusCode === 200) return socket;
  socket.destroy();
  throw new Error(`the proxy ${proxy.host} answered ${statusCode}`);
}

function stopWhenIdle(request: http.ClientRequest): http.ClientRequest {
  const idle = (): void => void request.destroy(new Error(`no data arrived for ${IDLE_MS / 1000} s`));
  return request.setTimeout(IDLE_MS, idle);
}
