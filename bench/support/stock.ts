/** `temporal server start-dev` with a file and no other option, as in its documentation. */
import { join } from 'node:path';
import { findTemporalBinary } from '../../src/server/index.ts';
import { accepts, freePort, spawnServer } from '../../src/server/server-process.ts';
import type { Context } from './context.ts';
import { openScene, type Scene } from './scene.ts';
import { until } from './until.ts';

/** Workers of both sides on such a server; `args` are added to its command line. */
export async function stockScene(context: Context, ...args: string[]): Promise<Scene> {
  const dir = await context.temporaryDir();
  const { path } = await findTemporalBinary();
  const port = await freePort();
  const server = await spawnServer(
    path,
    [
      'server',
      'start-dev',
      '--db-filename',
      join(dir, 'stock.db'),
      '--port',
      String(port),
      '--headless',
      ...args,
    ],
    join(dir, 'stock.log'),
    false,
  );
  context.onClose(async () => {
    server.signal('SIGTERM');
    await server.exited;
  });
  await until(() => accepts('127.0.0.1', port));
  const scene = await until(() => openScene(`127.0.0.1:${port}`).catch(() => undefined), { everyMs: 100 });
  context.onClose(() => scene.close());
  return scene;
}
