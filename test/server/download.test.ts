import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { archiveFor, download } from '../../src/server/download.ts';
import {
  type BinaryAttempt,
  findTemporalBinary,
  TEMPORAL_CACHE_NAME,
  TEMPORAL_CLI_VERSION,
} from '../../src/server/index.ts';
import { refusal } from './support/refusal.ts';
import { scratch, script, temporalScript } from './support/scripts.ts';

/** A release archive whose `temporal` says that it ran, in a file of its own. */
async function release(): Promise<{ bytes: Buffer; sha256: string; ran: string }> {
  const dir = await scratch();
  const ran = join(dir, 'ran');
  await script(dir, 'temporal', `echo yes > ${ran}; ${temporalScript()}`);
  await promisify(execFile)('tar', ['-czf', join(dir, 'archive'), '-C', dir, 'temporal']);
  const bytes = await readFile(join(dir, 'archive'));
  return { bytes, sha256: createHash('sha256').update(bytes).digest('hex'), ran };
}

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const quiet = { env: {}, onProgress: (): void => undefined };

describe('a download of the Temporal CLI', () => {
  it('is unpacked when it is the pinned archive, also behind a redirect', async () => {
    const { bytes, sha256 } = await release();
    const url = await serve(({ url: path }, response) => {
      if (path === '/moved') response.end(bytes);
      else response.writeHead(302, { location: '/moved' }).end();
    });
    const dir = await scratch();
    const path = await download({ ...quiet, dir }, { url, sha256 });
    expect((await promisify(execFile)(path, ['--version'])).stdout).toContain(TEMPORAL_CLI_VERSION);
  });

  it('is not unpacked when one byte differs, and leaves nothing', async () => {
    const { bytes, sha256 } = await release();
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    const url = await serve((_, response) => response.end(bytes));
    const dir = await scratch();
    await expect(download({ ...quiet, dir }, { url, sha256 })).rejects.toThrow(
      new RegExp(`has SHA-256 [0-9a-f]{64}, but ${sha256} is expected`),
    );
    expect(await readdir(dir)).toEqual([]);
  });

  it('is refused from a mirror that serves something else, and nothing of it runs or stays', async () => {
    const { bytes, ran } = await release();
    const asked: (string | undefined)[] = [];
    const url = await serve((request, response) => {
      asked.push(request.url);
      response.end(bytes);
    });
    const cache = await scratch();
    const env = { PATH: '', XDG_CACHE_HOME: cache, PERDURE_TEMPORAL_MIRROR: `${url}/` };
    const lines: string[] = [];
    const { code, message, details } = await refusal(
      findTemporalBinary({ env, build: false, onProgress: (line) => lines.push(line) }),
    );
    expect(code).toBe('SERVER_UNAVAILABLE');
    expect(message).toContain(`but ${archiveFor({}).sha256} is expected`);
    expect(lines.at(-1)).toMatch(/a download: .* It was not unpacked/);
    expect((details['attempts'] as BinaryAttempt[]).at(-2)?.way).toBe('a download');
    expect(asked).toEqual([expect.stringMatching(`^/v${TEMPORAL_CLI_VERSION}/temporal_cli_`)]);
    expect(await readdir(join(cache, 'perdure', TEMPORAL_CACHE_NAME))).toEqual([]);
    await expect(readFile(ran)).rejects.toThrow('ENOENT');
  });

  it('says what the server answered', async () => {
    const url = await serve((_, response) => response.writeHead(404).end());
    await expect(download({ ...quiet, dir: await scratch() }, { url, sha256: '' })).rejects.toThrow(
      `${url} cannot be downloaded: the server answered 404`,
    );
  });

  it('goes through the proxy that HTTPS_PROXY names', async () => {
    const asked: string[] = [];
    const server = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    server.on('connect', ({ url, headers }, socket) => {
      asked.push(`${url} ${headers['proxy-authorization']}`);
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
    });
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const env = { HTTPS_PROXY: `http://me:secret@127.0.0.1:${port}` };
    await expect(download({ ...quiet, env, dir: await scratch() })).rejects.toThrow(
      `the proxy 127.0.0.1:${port} answered 407`,
    );
    expect(asked).toEqual([`github.com:443 Basic ${Buffer.from('me:secret').toString('base64')}`]);
  });
});
