/** Schemas of workflow code. */
import { readdir } from 'node:fs/promises';
import { expect, test } from 'vitest';

const ROOMS = ['contract', 'session', 'thread', 'pool', 'rates'];

test('no module of workflow code exports a schema itself: Temporal freezes exports, and a frozen schema fails', async () => {
  const exported: string[] = [];
  for (const room of ROOMS) {
    const folder = new URL(`../../src/${room}/`, import.meta.url);
    const files = (await readdir(folder)).filter((name) => name.endsWith('.ts'));
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      const module = (await import(new URL(file, folder).href)) as Record<string, unknown>;
      for (const [name, value] of Object.entries(module)) {
        if (typeof value === 'object' && value !== null && '_zod' in value)
          exported.push(`${room}/${file}: ${name}`);
      }
    }
  }
  // Export `lazySchema(() => …)` instead.
  expect(exported).toEqual([]);
});
