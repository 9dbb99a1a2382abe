import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROOT } from '../structure/project.ts';
import { errorOf, type Ran, run } from './support/perdure.ts';
import { AGENTS, type CliStage, openStage } from './support/stage.ts';

const CODEC = `
  import { aesGcmCodec } from 'perdure/encryption';
  export const dataConverter = {
    payloadCodecs: [aesGcmCodec({ keys: { k1: process.env.SESSION_KEY }, current: 'k1' })],
  };
`;
const SESSION_KEY = randomBytes(32).toString('base64');

let stage: CliStage;
let folder: string;
beforeAll(async () => {
  stage = await openStage();
  folder = await mkdtemp(join(tmpdir(), 'perdure-codec-'));
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
  await writeFile(join(folder, 'package.json'), '{"type": "module"}');
  await writeFile(join(folder, 'codec.ts'), CODEC);
  await writeFile(join(folder, 'none.ts'), 'export const a = 1;');
  await writeFile(join(folder, 'wrong.ts'), 'export const dataConverter = { payloadCodecs: [{}] };');
});
afterAll(async () => {
  await stage.close();
  await rm(folder, { recursive: true });
});

const perdure = (...args: string[]): Promise<Ran> => run(args, { env: { ...stage.env, SESSION_KEY } });

test('worker, start, show and send use the data converter that is typed or in the environment; without it send is refused', async () => {
  const codec = join(folder, 'codec.ts');
  const env = { SESSION_KEY, PERDURE_DATA_CONVERTER: codec };
  const worker = stage.start(['worker', AGENTS, '--json'], { env });
  await worker.line((line) => line.includes('"ready"'));
  const id = stage.id('sealed');
  const started = await perdure(
    'start',
    'echo',
    'the marker',
    '--id',
    id,
    '--follow',
    '--data-converter',
    codec,
  );
  expect(started).toMatchObject({ code: 0, stdout: expect.stringContaining('you said: the marker') });

  const refused = await perdure('send', id, 'plain text', '--json');
  expect(refused.code).toBe(4);
  expect(errorOf(refused)).toMatchObject({
    code: 'ENCRYPTED',
    message: expect.stringContaining('for commands: --data-converter <module>'),
  });
  expect(await perdure('--data-converter', codec, 'send', id, 'more')).toMatchObject({ code: 0 });
  expect((await run(['show', id], { env: { ...stage.env, ...env } })).stdout).toContain('the marker');
  worker.child.kill('SIGTERM');
  await worker.ended;
});

test.each([
  [
    'none.ts',
    'INVALID_DEFINITION',
    /none\.ts: there is no data converter \(it exports a\)\. Write: export const/,
  ],
  [
    'wrong.ts',
    'INVALID_DEFINITION',
    /wrong\.ts: payloadCodecs is not a list of codecs with encode and decode/,
  ],
  [
    'missing.ts',
    'INVALID_ARGUMENT',
    /data converter: \S+missing\.ts is not a file\. Create it: export const/,
  ],
])('the module %s is refused with what to write', async (name, code, message) => {
  const ran = await perdure('ls', '--json', '--data-converter', join(folder, name));
  expect(errorOf(ran)).toMatchObject({ code, message: expect.stringMatching(message) });
});

test('a key of a wrong length is named, and not shown', async () => {
  const short = randomBytes(16).toString('base64');
  const env = { ...stage.env, SESSION_KEY: short };
  const ran = await run(['ls', '--json', '--data-converter', join(folder, 'codec.ts')], { env });
  expect(errorOf(ran)).toMatchObject({ message: expect.stringContaining('keys.k1: has 16 bytes') });
  expect(ran.stderr).not.toContain(short);
});
