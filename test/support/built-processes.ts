/**
 * Builds the modules that tests run as processes, once per run: a process is slow to load the many small source files.
 */
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { prebuiltName, workflowBundle } from '../../src/worker/workflow-bundle.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CACHE = join(ROOT, 'node_modules', '.cache', 'perdure');

/** Programs, and the agents that worker processes load. Others run from the sources. */
const MODULES = [
  'examples/chat/agents.ts',
  'examples/payments/server.ts',
  'examples/support-desk/agents.ts',
  'examples/support-desk/shop.ts',
  'faults/agents.ts',
  'src/testing/harness/worker-main.ts',
  'test/mcp/support/stdio-server.ts',
  'test/saver/support/rollover-agents.ts',
  'test/support/corrected-agents.ts',
  'test/support/dying-agents.ts',
  'test/support/effect-agents.ts',
  'test/support/limited-agents.ts',
  'test/support/live-agents.ts',
  'test/support/notifying-agents.ts',
  'test/support/rolling-agents.ts',
  'test/support/traced-agents.ts',
  'test/support/tree-agents.ts',
  'test/support/value-agents.ts',
  'test/support/versioned-agents.ts',
  'test/support/window-agents.ts',
];

/** The package by its name. */
const DOORS = {
  perdure: './src/index.ts',
  'perdure/encryption': './src/encryption/index.ts',
  'perdure/mcp': './src/mcp/index.ts',
  'perdure/package.json': './package.json',
  'perdure/testing': './src/testing/index.ts',
};

/** A build of the modules. */
export interface BuiltProcesses {
  readonly folder: string;
  /** Builds again, after the sources have changed. */
  rebuild(): Promise<void>;
  remove(): Promise<void>;
}

/** Builds the modules into a folder of this run. */
export async function buildProcesses(): Promise<BuiltProcesses> {
  await mkdir(CACHE, { recursive: true });
  const folder = await mkdtemp(join(CACHE, 'processes-'));
  const rebuild = async (): Promise<void> => {
    await build({
      absWorkingDir: ROOT,
      entryPoints: MODULES,
      outdir: folder,
      outbase: '.',
      // The package finds its other files by the place of a chunk.
      chunkNames: 'src/chunks/[name]-[hash]',
      bundle: true,
      splitting: true,
      alias: DOORS,
      packages: 'external',
      platform: 'node',
      format: 'esm',
      target: 'node20.19',
      logLevel: 'warning',
    });
    await copyFile((await workflowBundle()).codePath, join(folder, 'src', prebuiltName));
  };
  await rebuild();
  return { folder, rebuild, remove: () => rm(folder, { recursive: true, force: true }) };
}
