import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { copyProject, ROOT, run } from './project.ts';

const MODULES_AT_LEAST = 60;

type Rooms = Readonly<Record<string, { readonly rooms: string[]; readonly packages: string[] }>>;

const { ROOMS } = (await import(pathToFileURL(join(ROOT, '.dependency-cruiser.mjs')).href)) as {
  ROOMS: Rooms;
};

/** Modules that break one rule each, and the rule that must say so; the second half of the cycle needs none. */
const PLANTED: readonly { file: string; text: string; rule: string }[] = [
  { file: 'contract/p.ts', text: "import '../session/p.ts';", rule: 'contract-rooms' },
  { file: 'contract/q.ts', text: "import { readFileSync } from 'node:fs';", rule: 'contract-node' },
  { file: 'contract/r.ts', text: "import { Client } from '@temporalio/client';", rule: 'contract-packages' },
  { file: 'session/p.ts', text: "import type { P } from '../history/p.ts';", rule: 'session-rooms' },
  { file: 'session/q.ts', text: "import { z } from 'zod';", rule: 'session-packages' },
  { file: 'thread/p.ts', text: "import type { P } from '../session/p.ts';", rule: 'thread-rooms' },
  { file: 'temporal/p.ts', text: "import '../history/p.ts';", rule: 'temporal-rooms' },
  { file: 'checkpoints/p.ts', text: "import '../saver/p.ts';", rule: 'checkpoints-rooms' },
  { file: 'history/p.ts', text: "import type { P } from '../client/p.ts';", rule: 'history-rooms' },
  { file: 'workflows/p.ts', text: "import type { P } from '../activities/p.ts';", rule: 'workflows-rooms' },
  {
    file: 'workflows/q.ts',
    text: "import { Worker } from '@temporalio/worker';",
    rule: 'workflows-packages',
  },
  { file: 'workflows/r.ts', text: "import { createHash } from 'node:crypto';", rule: 'workflows-node' },
  { file: 'agent/p.ts', text: "import '../worker/p.ts';", rule: 'agent-rooms' },
  { file: 'activities/p.ts', text: "import '../saver/p.ts';", rule: 'activities-rooms' },
  { file: 'client/p.ts', text: "import '../saver/p.ts';", rule: 'client-rooms' },
  { file: 'saver/p.ts', text: "import '../activities/p.ts';", rule: 'saver-rooms' },
  { file: 'archive/p.ts', text: "import '../cli/p.ts';", rule: 'archive-rooms' },
  { file: 'worker/p.ts', text: "import '../archive/p.ts';", rule: 'worker-rooms' },
  { file: 'server/p.ts', text: "import '../client/p.ts';", rule: 'server-rooms' },
  { file: 'http/p.ts', text: "import '../worker/p.ts';", rule: 'http-rooms' },
  { file: 'console/p.ts', text: "import '../client/p.ts';", rule: 'console-rooms' },
  { file: 'testing/p.ts', text: "import '../cli/p.ts';", rule: 'testing-rooms' },
  { file: 'cli/p.ts', text: "import '../testing/p.ts';", rule: 'cli-rooms' },
  { file: 'cli/q.ts', text: "import { test } from 'vitest';", rule: 'no-development-dependency' },
  {
    file: 'history/q.ts',
    text: "import { tsToMs } from '@temporalio/common/lib/time.js';",
    rule: 'sdk-internals',
  },
  { file: 'agent/q.ts', text: "import './nowhere.ts';", rule: 'resolvable' },
  { file: 'agent/a.ts', text: "import { b } from './b.ts'; export const a = b;", rule: 'no-cycle' },
  { file: 'agent/b.ts', text: "import { a } from './a.ts'; export const b = a;", rule: '' },
  { file: 'index.ts', text: "export * from './session/p.ts';", rule: 'main-door' },
  { file: 'elsewhere/p.ts', text: 'export const p = 1;', rule: 'no room' },
];

describe('the rooms of src', () => {
  test('import in the directions of the table, and all of them were seen', async () => {
    const { code, output } = await run(ROOT, 'node', 'scripts/rooms.mjs');
    expect(output).toMatch(/0 problems/);
    expect(code).toBe(0);
    expect(Number(/(\d+) modules/.exec(output)?.[1])).toBeGreaterThanOrEqual(MODULES_AT_LEAST);
  });

  test('a planted violation of each rule is caught', async () => {
    await using copy = await copyProject();
    for (const { file, text } of PLANTED) await copy.write(`src/${file}`, `${text}\nexport {};\n`);
    const { code, output } = await run(copy.root, 'node', 'scripts/rooms.mjs');
    expect(code).toBe(1);
    for (const { file, rule } of PLANTED.filter((planted) => planted.rule !== '')) {
      expect(output).toContain(`${rule}: src/${file}`);
    }
  });

  test('a source tree that is all but empty does not pass', async () => {
    const { code, output } = await run(
      join(ROOT, 'test/structure/almost-empty'),
      'node',
      '../../../scripts/rooms.mjs',
    );
    expect(code).toBe(1);
    expect(output).toMatch(/only 1 modules in src/);
  });

  test('are those of the table in CONTRIBUTING.md', async () => {
    const text = await readFile(join(ROOT, 'CONTRIBUTING.md'), 'utf8');
    const [, table = ''] = text.split('## The rooms');
    const written = [...table.matchAll(/^\| `(\w+)` \| ([^|]*) \| ([^|]*) \|/gm)].map(
      ([, room, rooms, packages]) => [room, { rooms: names(rooms), packages: names(packages) }],
    );
    expect(Object.fromEntries(written)).toEqual(ROOMS);
  });

  test('are the folders of src', async () => {
    const folders = (await readdir(join(ROOT, 'src'), { withFileTypes: true })).filter((entry) =>
      entry.isDirectory(),
    );
    expect(folders.map(({ name }) => name).sort()).toEqual(Object.keys(ROOMS).sort());
  });
});

function names(cell: string | undefined): string[] {
  return [...(cell ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? '');
}
