/** The package as it is built and published: few files where the sources are many, and each finds its own. */
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { copyProject, run } from './project.ts';

const AGENTS = `
import { appendFileSync, readFileSync } from 'node:fs';
import { defineAgent, defineTool } from 'perdure';
import { z } from 'zod';

const FILE = process.env.NOTES_FILE;

const note = defineTool({
  description: 'Note a line',
  inputSchema: z.object({ line: z.string() }),
  effect: 'mutate',
  execute: ({ line }, { idempotencyKey }) => {
    appendFileSync(FILE, idempotencyKey + ' ' + line + '\\n');
    return { noted: line };
  },
  verify: ({ line }, { idempotencyKey }) =>
    readFileSync(FILE, 'utf8').includes(idempotencyKey)
      ? { outcome: 'landed', output: { noted: line } }
      : { outcome: 'absent' },
});

export const clerk = defineAgent({ name: 'clerk', model: 'openai:any', instructions: 'Note it.', tools: { note } });
`;

const STORY = `
import { readFileSync } from 'node:fs';
import { isPerdureError } from 'perdure';
import { createHarness } from 'perdure/testing';
import * as workflows from 'perdure/workflows';
import * as langgraph from 'perdure/langgraph';

const harness = await createHarness({
  module: new URL('./agents.mjs', import.meta.url),
  server: JSON.parse(process.argv[2]),
  script: [{ toolCalls: [{ name: 'note', args: { line: 'one pen' } }] }, { text: 'It is noted.' }],
  env: { NOTES_FILE: process.env.NOTES_FILE },
});
try {
  const worker = await harness.startWorkerProcess({ breakAt: ['after note'] });
  const session = await harness.startSession('clerk', { message: 'Note one pen.' });
  await worker.reached('after note');
  await worker.crash();
  await harness.startWorkerProcess();
  const { lastText } = await harness.until(session, 'idle');
  const refused = await harness.sessions.start('clerk', { id: '' }).catch((error) => error);
  console.log(JSON.stringify({
    lastText,
    notes: readFileSync(process.env.NOTES_FILE, 'utf8').trimEnd().split('\\n').length,
    // One class for all doors: the kit's errors are the main door's.
    known: isPerdureError(refused),
    workflows: 'agentSession' in workflows,
    langgraph: Object.keys(langgraph).length > 0,
  }));
} finally {
  await harness.stop();
}
`;

/** Shows which modules of a worker `perdure/client` loads. */
const IMPORT_CLIENT = `
import { createRequire } from 'node:module';
const { Sessions } = await import('perdure/client');
if (typeof Sessions !== 'function') throw new Error('no Sessions');
const loaded = Object.keys(createRequire(import.meta.url).cache);
console.log(JSON.stringify(loaded.filter((path) => /@temporalio.(worker|core-bridge|testing|activity)|node_modules.ai/.test(path))));
`;

/** Serves the console from the sources, as `npx tsx src/cli/main.ts serve` does. */
const PAGE = `
import { Hono } from 'hono';
import { serveConsole } from './src/http/console.ts';

const app = new Hono();
serveConsole(app);
for (const path of ['/console', '/console/main.js', '/console/main.css'])
  console.log((await app.request(path)).status);
`;

test('what is built runs a session through a crash, with its own bundle, worker and command line', async () => {
  await using project = await copyProject();
  const built = await run(project.root, 'node', 'scripts/build.mjs');
  expect(built, built.output).toMatchObject({ code: 0 });
  await project.write('page.ts', PAGE);
  const page = await run(project.root, 'tsx', 'page.ts');
  expect(page).toEqual({ code: 0, output: '200\n200\n200\n' });

  // What only the sources hold is missed.
  await rm(join(project.root, 'src'), { recursive: true });
  await project.write('agents.mjs', AGENTS);
  await project.write('story.mjs', STORY);
  process.env['NOTES_FILE'] = join(project.root, 'notes.txt');

  const told = await run(project.root, 'node', 'story.mjs', JSON.stringify(inject('temporal')));
  expect(told, told.output).toMatchObject({ code: 0 });
  expect(JSON.parse(told.output.trimEnd().split('\n').at(-1) ?? '')).toEqual({
    lastText: 'It is noted.',
    notes: 1,
    known: true,
    workflows: true,
    langgraph: true,
  });

  // A bundle that holds another version of the SDK is not run: the modules are bundled again.
  const dist = join(project.root, 'dist');
  const [bundle = ''] = (await readdir(dist)).filter((name) => name.startsWith('workflow-bundle-'));
  await rename(join(dist, bundle), join(dist, 'workflow-bundle-1.0.0.js'));
  await rm(join(project.root, 'notes.txt'));
  const again = await run(project.root, 'node', 'story.mjs', JSON.stringify(inject('temporal')));
  expect(again, again.output).toMatchObject({ code: 0 });
  expect(JSON.parse(again.output.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({ notes: 1 });

  await project.write('import-client.mjs', IMPORT_CLIENT);
  const loaded = await run(project.root, 'node', 'import-client.mjs');
  expect(loaded, loaded.output).toEqual({ code: 0, output: '[]\n' });

  const version = await run(project.root, 'node', 'dist/cli/main.js', '--version');
  expect(version).toEqual({ code: 0, output: `${packageJson.version}\n` });
});
