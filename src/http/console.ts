/** The page for people: static files that `scripts/build.mjs` makes of `src/console`. */
import { readFile } from 'node:fs/promises';
import { extname, resolve } from 'node:path';
import type { Hono } from 'hono';
import { PerdureError } from '../contract/errors.ts';

const BASE = '/console';
/** In a build the page is beside this room. The sources serve the page of the last build. */
const FOLDER = resolve(
  import.meta.dirname,
  extname(import.meta.filename) === '.ts' ? '../../dist/console' : '../console',
);

const TYPES = {
  'index.html': 'text/html; charset=utf-8',
  'main.js': 'text/javascript; charset=utf-8',
  'main.css': 'text/css; charset=utf-8',
} as const;

/** The page runs its own script, and talks to its own server only. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
};

/**
 * Serves the page under `/console`, without a token: it has no data of its own. Browsers that open `/` are redirected
 * there.
 */
export function serveConsole(app: Hono): void {
  const page = async (name: keyof typeof TYPES): Promise<Response> => {
    const body = await readFile(resolve(FOLDER, name)).catch((error: unknown) => {
      throw new PerdureError('INTERNAL', 'The console is not built: run npm run build', { cause: error });
    });
    return new Response(body, { headers: { ...HEADERS, 'content-type': TYPES[name] } });
  };
  app.get('/', async ({ req, redirect }, next) =>
    req.header('accept')?.includes('text/html') === true ? redirect(BASE) : next(),
  );
  app.get(`${BASE}/main.js`, () => page('main.js'));
  app.get(`${BASE}/main.css`, () => page('main.css'));
  app.get(BASE, () => page('index.html'));
  app.get(`${BASE}/*`, () => page('index.html'));
}
