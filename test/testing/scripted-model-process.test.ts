import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText } from 'ai';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readRecordFile } from '../../src/testing/index.ts';
import { type ReadyProcess, startProcess } from '../support/ready-process.ts';

const MAIN = fileURLToPath(new URL('../../src/testing/scripted-model/main.ts', import.meta.url));

let folder: string;
let scriptFile: string;
let recordFile: string;
const processes: ReadyProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'scripted-model-'));
  scriptFile = join(folder, 'script.ts');
  recordFile = join(folder, 'calls.jsonl');
});
afterEach(async () => {
  await Promise.all(processes.splice(0).map((started) => started.kill()));
  rmSync(folder, { recursive: true });
});

async function start(source: string, ...args: string[]): Promise<ReadyProcess> {
  writeFileSync(scriptFile, source);
  const started = await startProcess(MAIN, ['--script', scriptFile, '--record', recordFile, ...args]);
  processes.push(started);
  return started;
}

const ask = async (url: string, prompt: string): Promise<string> => {
  const model = createOpenAICompatible({ name: 'scripted', baseURL: url })('m');
  return (await generateText({ model, prompt, maxRetries: 0 })).text;
};

const ECHO = 'export const script = (request: { lastUserText: string }) => ({ text: request.lastUserText });';

test('it serves a script from a module and records every call', async () => {
  const { ready } = await start(ECHO);
  expect(await ask(ready.url, 'one')).toBe('one');
  expect(await ask(ready.url, 'two')).toBe('two');
  const lines = readRecordFile(recordFile);
  expect(lines).toMatchObject([
    { model: 'm', assistantCount: 0, outcome: 'reply' },
    { model: 'm', assistantCount: 0, outcome: 'reply' },
  ]);
  expect(new Set(lines.map(({ digest }) => digest)).size).toBe(2);
});

test('after a SIGKILL the record is there without what was cut short, and the count of repeats goes on', async () => {
  const source = `export const script = (request: { repeat: number }) =>
    request.repeat < 2 ? { fault: 'status', status: 429 } : { text: 'at last' };`;
  const first = await start(source);
  await expect(ask(first.ready.url, 'go')).rejects.toMatchObject({ statusCode: 429 });
  await expect(ask(first.ready.url, 'go')).rejects.toMatchObject({ statusCode: 429 });
  await first.kill();
  appendFileSync(recordFile, '{"at":"2026-');
  const second = await start(source, '--port', String(first.ready.port));
  expect(second.ready.url).toBe(first.ready.url);
  expect(await ask(second.ready.url, 'go')).toBe('at last');
  expect(readRecordFile(recordFile).map(({ outcome }) => outcome)).toEqual([
    'fault:status:429',
    'fault:status:429',
    'reply',
  ]);
});

test('it ends with SIGTERM, and with its stdin when asked to', async () => {
  expect(await (await start(ECHO)).terminate()).toBe(0);
  expect(await (await start(ECHO, '--with-stdin')).closeStdin()).toBe(0);
});

test('a module without a script is refused before anything listens', async () => {
  await expect(start('export const other = 1;')).rejects.toThrow('does not export a function named script');
});
