import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import * as contract from '../../src/contract/errors.ts';
import * as main from '../../src/index.ts';
import { ERROR_CODES, isPerdureError, PerdureError } from '../../src/index.ts';
import * as testing from '../../src/testing/index.ts';
import * as workflows from '../../src/workflows/index.ts';
import { ROOT } from './project.ts';

const isErrorClass = (value: unknown): value is { readonly prototype: Error; readonly name: string } =>
  typeof value === 'function' && value.prototype instanceof Error;

describe('errors', () => {
  test('that a door exports all descend from the branded one', () => {
    const exported = [main, testing, workflows, contract].flatMap((door) =>
      Object.values<unknown>({ ...door }),
    );
    const classes = new Set(exported.filter(isErrorClass));
    expect(classes.has(PerdureError)).toBe(true);
    for (const { prototype, name } of classes) {
      expect(prototype === PerdureError.prototype || prototype instanceof PerdureError, name).toBe(true);
    }
  });

  test('carry the brand and a code, also for another copy of the package', () => {
    for (const code of ERROR_CODES) {
      const error = new PerdureError(code, 'what went wrong');
      expect(isPerdureError(error, code)).toBe(true);
      const foreign = Object.assign(new Error('of another realm'), {
        code,
        brand: 'perdure.error',
      });
      expect(isPerdureError(foreign, code)).toBe(true);
    }
    expect(isPerdureError(Object.assign(new Error('no brand'), { code: ERROR_CODES[0] }))).toBe(false);
  });

  test('say what to do about them: the remedy follows from the code', () => {
    const remedies = Object.fromEntries(ERROR_CODES.map((code) => [code, new PerdureError(code, '').remedy]));
    expect(remedies).toMatchObject({
      INVALID_ARGUMENT: 'fix_input',
      TOO_LARGE: 'fix_input',
      DIGEST_MISMATCH: 'ask_person',
      SERVER_UNAVAILABLE: 'retry',
      NO_WORKER: 'wait',
      TASK_FAILING: 'ask_person',
      INTERNAL: 'ask_person',
    });
    // It is a field, so it stays when an error becomes JSON.
    expect(JSON.parse(JSON.stringify(new PerdureError('NO_WORKER', '')))).toMatchObject({ remedy: 'wait' });
  });

  test('are thrown with a code: no class of src extends Error by itself', async () => {
    // The page's own errors are answers of the API, in a browser.
    const paths = (await readdir(join(ROOT, 'src'), { recursive: true })).filter(
      (path) => path.endsWith('.ts') && !path.startsWith('console/'),
    );
    const bare: string[] = [];
    for (const path of paths) {
      const text = await readFile(join(ROOT, 'src', path), 'utf8');
      for (const [, name = ''] of text.matchAll(
        /class (\w+) extends (?:globalThis\.)?\w*Error\b(?<!PerdureError|NotAttemptedError)/g,
      )) {
        bare.push(`${path}: ${name}`);
      }
    }
    expect(bare).toEqual([expect.stringMatching(/errors\.ts: PerdureError$/)]);
  });
});
