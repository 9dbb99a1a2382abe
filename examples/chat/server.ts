/** The web app: the page, the chat's handler, and a worker in a process of its own. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { serve } from '@hono/node-server';
import { serveStatic } from '@hono/node-server/serve-static';
import { Hono } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';
import { createChatHandler } from 'perdure/chat';
import { createHarness, type WorkerProcess } from 'perdure/testing';
import { build } from 'vite';
import { script } from './script.ts';

export interface ChatServer {
  url: string;
  /** Kills the worker with SIGKILL, and starts another one. */
  crashWorker(): Promise<void>;
  stop(): Promise<void>;
}

/** @param options - `server`: a Temporal server to use. Default: one of its own */
export async function startChat(
  options: { port?: number; server?: { address: string; namespace?: string } } = {},
): Promise<ChatServer> {
  const { port = 0, ...where } = options;
  const folder = await mkdtemp(join(tmpdir(), 'chat-'));
  const harness = await createHarness({
    ...where,
    script,
    module: new URL('./agents.ts', import.meta.url),
    env: { REFUNDS_FILE: join(folder, 'refunds.jsonl') },
  });
  let worker: WorkerProcess = await harness.startWorkerProcess();
  const crashWorker = async (): Promise<void> => {
    await worker.crash();
    worker = await harness.startWorkerProcess();
  };

  // #region handler
  const handler = createChatHandler({
    sessions: harness.sessions,
    agent: 'shop',
    // Your app has its own way to know who asks.
    authorize: (request) => {
      const user = /(?:^|; )user=([0-9a-f-]{36})/.exec(request.headers.get('cookie') ?? '')?.[1];
      return user === undefined ? null : { user };
    },
  });
  const app = new Hono();
  app.all('/api/chat', ({ req }) => handler(req.raw));
  app.all('/api/chat/*', ({ req }) => handler(req.raw));
  // #endregion
  app.post('/crash', async (context) => {
    await crashWorker();
    return context.body(null, 204);
  });
  app.get('/', async (context, next) => {
    const user = getCookie(context, 'user') ?? randomUUID();
    setCookie(context, 'user', user, { httpOnly: true, sameSite: 'Strict', path: '/' });
    await next();
  });
  const page = join(folder, 'page');
  await build({
    root: fileURLToPath(new URL('./page', import.meta.url)),
    configFile: false,
    logLevel: 'error',
    // For users, whatever the environment of this process says.
    define: { 'process.env.NODE_ENV': '"production"' },
    oxc: { jsx: { runtime: 'automatic', development: false } },
    build: { outDir: page, emptyOutDir: true },
  });
  app.use('/*', serveStatic({ root: relative(process.cwd(), page) }));

  const server = serve({ fetch: app.fetch, port, hostname: '127.0.0.1' });
  await new Promise((resolve) => server.once('listening', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    crashWorker,
    stop: async () => {
      if ('closeAllConnections' in server) server.closeAllConnections();
      server.close();
      await harness.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
