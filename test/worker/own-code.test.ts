/** What a user brings into the sandbox is bundled with the workflows of sessions, or refused with words. */
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@temporalio/client';
import type * as sdk from '@temporalio/worker';
import {
  bundleWorkflowCode,
  DefaultLogger,
  NativeConnection,
  Worker,
  type WorkerPlugin,
} from '@temporalio/worker';
import { expect, inject, onTestFinished, test } from 'vitest';
import { type DefinedAgent, defineAgent, PerdurePlugin, Sessions } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';
import { openStage, type Stage } from '../support/stage.ts';

const file = (name: string): string => fileURLToPath(new URL(`support/${name}`, import.meta.url));
const logger = new DefaultLogger('ERROR');

/** A payload converter with an encoding of its own, which no other reads. The SDK takes it by `require`, so it is JavaScript. */
function converterFile(): string {
  const directory = mkdtempSync(join(tmpdir(), 'perdure-converter-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'converter.cjs');
  const common = createRequire(import.meta.url).resolve('@temporalio/common');
  writeFileSync(
    path,
    `const { CompositePayloadConverter, JsonPayloadConverter, UndefinedPayloadConverter } = require(${JSON.stringify(common)});
const ENCODING = 'json/marked';
const json = new JsonPayloadConverter();
const marked = {
  encodingType: ENCODING,
  toPayload: (value) => {
    const payload = json.toPayload(value);
    return payload && { ...payload, metadata: { encoding: new TextEncoder().encode(ENCODING) } };
  },
  fromPayload: (payload) => json.fromPayload(payload),
};
exports.payloadConverter = new CompositePayloadConverter(new UndefinedPayloadConverter(), marked);
`,
  );
  return path;
}

async function setting(): Promise<Stage & { agent: DefinedAgent }> {
  const stage = await openStage(() => ({ text: 'Good morning.' }));
  const agent = defineAgent({ name: 'polite', model: stage.provider('any'), instructions: 'Greet.' });
  return { ...stage, agent };
}

/** Runs one turn of a session and answers its last text. */
async function turn({ sessions, id }: Pick<Stage, 'sessions' | 'id'>): Promise<string | null> {
  const session = await sessions.start('polite', { id: id(), message: 'Hello?' });
  await expect.poll(async () => (await session.state()).phase).toBe('idle');
  return (await session.state()).lastText;
}

test('workflows of a user’s own run beside sessions, and need not name them', async () => {
  const stage = await setting();
  await stage.startWorker([stage.agent], { workflowsPath: file('greeting.ts') });
  const { taskQueue, client } = stage;
  const greeting = { workflowId: stage.id('greeting'), taskQueue, args: ['Ada'] };
  expect(await client.workflow.execute('greeting', greeting)).toBe('Hello, Ada.');
  expect(await turn(stage)).toBe('Good morning.');
});

test('an activity of a user’s own that is named like one of ours runs beside it', async () => {
  const stage = await setting();
  const activities = { model: (name: string) => Promise.resolve(`a model of ${name}`) };
  await stage.startWorker([stage.agent], { workflowsPath: file('greeting.ts'), activities });
  const { taskQueue, client } = stage;
  const options = { workflowId: stage.id('modelling'), taskQueue, args: ['a ship'] };
  expect(await client.workflow.execute('modelling', options)).toBe('a model of a ship');
  expect(await turn(stage)).toBe('Good morning.');
});

test('a bundle that was made with the plugin holds the sessions; one without is refused', async () => {
  const stage = await setting();
  const workflowsPath = file('greeting.ts');
  const plugin = new PerdurePlugin({ agents: [stage.agent] });
  const whole = await bundleWorkflowCode({ workflowsPath, plugins: [plugin], logger });
  await stage.startWorker([stage.agent], { workflowBundle: whole });
  expect(await turn(stage)).toBe('Good morning.');

  const alone = await bundleWorkflowCode({ workflowsPath, logger });
  const error = await rejection(stage.startWorker([stage.agent], { workflowBundle: alone }));
  expect(error).toMatchObject({
    code: 'INVALID_DEFINITION',
    message: expect.stringContaining('lacks the workflows of sessions'),
  });
});

test('a payload converter runs in the sandbox', async () => {
  const stage = await setting();
  const dataConverter = { payloadConverterPath: converterFile() };
  const { connection, options } = stage.client;
  const client = new Client({ connection, namespace: options.namespace, dataConverter });
  await stage.startWorker([stage.agent], { dataConverter });
  const { id, taskQueue } = stage;
  expect(await turn({ sessions: new Sessions(client, { taskQueue }), id })).toBe('Good morning.');
});

test('workflow interceptors run; those that come after the plugin are refused', async () => {
  const stage = await setting();
  const workflowModules = [file('interceptors.ts')];
  await stage.startWorker([stage.agent], { interceptors: { workflowModules } });
  const session = await stage.sessions.start('polite', { id: stage.id(), message: 'Hello?' });
  await expect.poll(async () => (await session.state()).phase).toBe('idle');
  const { memo } = await stage.client.workflow.getHandle(session.id).describe();
  expect(memo).toMatchObject({ intercepted: true });

  const late: WorkerPlugin = {
    name: 'late',
    configureWorker: (options) => ({ ...options, interceptors: { workflowModules } }),
  };
  const { address, namespace } = inject('temporal');
  const connection = await NativeConnection.connect({ address });
  // The worker that does not run holds the connection.
  onTestFinished(() => connection.close().catch(() => {}));
  const worker = await Worker.create({
    connection,
    namespace,
    taskQueue: stage.taskQueue,
    plugins: [new PerdurePlugin({ agents: [stage.agent] }), late],
  });
  expect(await rejection(worker.run())).toMatchObject({ code: 'INVALID_DEFINITION' });
});

test('a worker of a second copy of the SDK is refused, with what to type', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'perdure-copy-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const require = createRequire(import.meta.url);
  const package_ = dirname(require.resolve('@temporalio/worker/package.json'));
  cpSync(package_, join(directory, 'worker'), { recursive: true });
  symlinkSync(dirname(dirname(package_)), join(directory, 'node_modules'), 'junction');
  const copy = require(join(directory, 'worker')) as typeof sdk;
  const { address, namespace } = inject('temporal');
  const connection = await copy.NativeConnection.connect({ address });
  onTestFinished(() => connection.close().catch(() => {}));
  const worker = await copy.Worker.create({
    connection,
    namespace,
    taskQueue: `copy-${process.pid}`,
    plugins: [new PerdurePlugin({ agents: [] })],
  });
  expect(await rejection(worker.run())).toMatchObject({
    code: 'INVALID_DEFINITION',
    message: expect.stringMatching(/another copy of @temporalio\/worker.*npm dedupe/),
  });
});
