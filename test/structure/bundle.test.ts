import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { describe, expect, test } from 'vitest';
import { copyProject, ROOT } from './project.ts';

const logger = new DefaultLogger('ERROR', () => undefined);

describe('the workflow bundle', () => {
  test("passes Temporal's bundler with nothing ignored", async () => {
    const { code } = await bundleWorkflowCode({ workflowsPath: join(ROOT, 'src/workflows'), logger });
    // The code of this project is in it, not just the SDK's.
    for (const file of ['src/workflows/index.ts', 'src/session/', 'src/contract/'])
      expect(code).toContain(file);
  });

  test('is refused with a module of Node, however deep', async () => {
    await using copy = await copyProject();
    await copy.write('src/session/deep.ts', "export { readFileSync } from 'node:fs';\n");
    await copy.write('src/workflows/index.ts', "export * from '../session/deep.ts';\n");
    const bundling = bundleWorkflowCode({ workflowsPath: join(copy.root, 'src/workflows'), logger });
    await expect(bundling).rejects.toThrow(/webpack|disallowed|fs/i);
  });
});
