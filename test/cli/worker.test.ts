import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { RATES, type RateView } from '../../src/contract/rates.ts';
import { rateLimiterId } from '../../src/contract/workflow-ids.ts';
import { ROOT } from '../structure/project.ts';
import { untilPhase } from '../support/stage.ts';
import { errorOf, type Running } from './support/perdure.ts';
import { AGENTS, type CliStage, openStage } from './support/stage.ts';

const GOOD = `
  import { defineAgent } from 'perdure';
  import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
  import { instructions } from './words';
  const provider = createOpenAICompatible({ name: 'mine', baseURL: process.env.OPENAI_BASE_URL as string });
  export const models = { languageModel: (id: string) => provider.languageModel(id.replace('mine:', '')) };
  export const mine = defineAgent({ name: 'mine', model: 'mine:scripted', instructions });
`;

let stage: CliStage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(() => stage.close());

describe('the module', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'perdure-agents-'));
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
    await writeFile(join(folder, 'package.json'), '{"type": "module"}');
    await writeFile(join(folder, 'words.ts'), "export const instructions: string = 'Be kind.';");
  });
  afterEach(() => rm(folder, { recursive: true }));

  const write = async (text: string, name = 'agents.ts'): Promise<string> => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };

  test.each([
    [
      'exports no agent',
      'export const a = 1;',
      /exports no agent \(it exports a\)\. Add one, such as: export const support = defineAgent/,
    ],
    ['exports nothing', 'const a = 1;', /exports no agent \(it exports nothing\)/],
    [
      'is not TypeScript',
      'export const a = = 1;',
      /cannot be loaded: [\s\S]*agents\.ts:1:17: ERROR: Unexpected "="/,
    ],
    ['imports what is not there', "import './nowhere.ts';", /cannot be loaded: .*nowhere/],
    ['throws', "throw new TypeError('not today');", /cannot be loaded: TypeError: not today/],
    [
      'defines an agent that is none',
      "import { defineAgent } from 'perdure';\nexport const a = defineAgent({ name: 'a', model: 'env:x', instructions: '' });",
      /cannot be loaded: agent .*instructions is empty/,
    ],
    [
      'names a model that nobody has',
      "import { defineAgent } from 'perdure';\nexport const models = { languageModel: () => undefined };\nexport const a = defineAgent({ name: 'a', model: 'x:y', instructions: 'b' });",
      /model 'x:y' is not in the worker's models/,
    ],
    [
      'exports models that are none',
      "import { defineAgent } from 'perdure';\nexport const models = 7;\nexport const a = defineAgent({ name: 'a', model: 'x:y', instructions: 'b' });",
      /the export models is not a provider registry/,
    ],
    [
      'exports rate limits that are none',
      `export const rateLimits = 7;\n${GOOD}`,
      /the export rateLimits is not an object of limits/,
    ],
  ])('that %s is refused in words', async (_name, text, message) => {
    const path = await write(text);
    const ran = await stage.perdure('worker', path, '--json');
    expect(ran).toMatchObject({ code: 1, stdout: '' });
    expect(errorOf(ran).code).toBe('INVALID_DEFINITION');
    expect(errorOf(ran).message).toMatch(message);
    if (!message.source.includes('model ')) expect(errorOf(ran).message).toContain(path);
  });

  test.each(['module', 'commonjs'])(
    'may be a %s, name no extension in its imports, and bring its models',
    async (type) => {
      await writeFile(join(folder, 'package.json'), JSON.stringify({ type }));
      await write(GOOD);
      // Not named: it is found by its usual name.
      const worker = stage.start(['worker', '--json'], { cwd: folder });
      try {
        const ready = await worker.line((line) => line.includes('"ready"') && line);
        expect(JSON.parse(ready)).toMatchObject({
          type: 'ready',
          agents: ['mine'],
          taskQueue: stage.taskQueue,
        });
        const id = stage.id('mine');
        await stage.begin(id, 'mine', 'hello');
        expect((await untilPhase(stage.session(id), 'idle')).lastText).toBe('you said: hello');
      } finally {
        await stop(worker, 'SIGTERM');
      }
    },
  );

  test('may bring the rate limits of its models', async () => {
    await write(`${GOOD}export const rateLimits = { mine: { requestsPerMinute: 500 } };`);
    const worker = stage.start(['worker', '--json'], { cwd: folder });
    try {
      await worker.line((line) => line.includes('"ready"'));
      const id = stage.id('limited');
      await stage.begin(id, 'mine', 'hello');
      await untilPhase(stage.session(id), 'idle');
      const limiter = stage.client.workflow.getHandle(rateLimiterId(stage.taskQueue, 'mine'));
      expect(await limiter.query<RateView>(RATES.view)).toMatchObject({
        limit: { requests: 500, windowMs: 60_000 },
      });
    } finally {
      await stop(worker, 'SIGTERM');
    }
  });
});

async function stop(worker: Running, signal: NodeJS.Signals): ReturnType<typeof end> {
  worker.child.kill(signal);
  return end(worker);
}
const end = (worker: Running): Running['ended'] => worker.ended;

test.each(['SIGTERM', 'SIGINT'] as const)('says when it polls, and ends in order at %s', async (signal) => {
  const worker = stage.start(['worker', AGENTS]);
  const ready = await worker.line((line) => line.startsWith('ready: ') && line);
  expect(ready).toContain(
    `echo, lead, support from test/cli/support/agents.ts on task queue ${stage.taskQueue}`,
  );
  expect(ready).toContain(`pid ${worker.child.pid}`);
  const { stdout } = await stage.perdure('doctor');
  expect(stdout).toMatch(new RegExp(`^ok +workers +.*\\b${worker.child.pid}@`, 'm'));
  expect(await stop(worker, signal)).toMatchObject({ code: 0, stderr: '' });
});

test('ends with the code of an unreachable server when there is none', async () => {
  const { ended } = stage.start(['worker', AGENTS, '--json'], { env: { TEMPORAL_ADDRESS: '127.0.0.1:1' } });
  const ran = await ended;
  expect(ran).toMatchObject({ code: 5, stdout: '' });
  expect(errorOf(ran).code).toBe('SERVER_UNAVAILABLE');
});
