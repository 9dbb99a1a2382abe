/** What `perdure` loads before it knows its verb: help and usage errors come at once. */
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { ROOT } from './project.ts';

test('the command line loads no client, worker or protobuf before a verb runs', async () => {
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/cli/main.ts'],
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    outdir: 'unwritten',
    write: false,
    metafile: true,
  });
  const loaded = new Set(['src/cli/main.ts']);
  for (const path of loaded) {
    for (const { kind, path: next } of metafile.inputs[path]?.imports ?? []) {
      if (kind === 'import-statement') loaded.add(next);
    }
  }
  // A scan that found nothing would pass.
  expect(loaded).toContain('src/cli/verbs/checkpoints-rewind.ts');
  expect([...loaded].filter((path) => /^(@temporalio.(client|proto|worker)|ai|hono)\b/.test(path))).toEqual(
    [],
  );
});
