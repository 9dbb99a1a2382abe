import { fileURLToPath } from 'node:url';
import { defineConfig, type ViteUserConfig } from 'vitest/config';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

const config: ViteUserConfig = defineConfig({
  resolve: {
    // Examples import the package by its name, as a user does, and get the source.
    alias: [
      { find: /^perdure$/, replacement: here('./src/index.ts') },
      { find: /^perdure\/(langgraph|records)$/, replacement: here('./src/saver/$1/index.ts') },
      { find: /^perdure\/(workflows|testing)$/, replacement: here('./src/$1/index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts', 'examples/**/*.test.ts'],
    globalSetup: ['./test/support/global-setup.ts'],
    // One process a file: workers hold native handles, and tests kill processes.
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // Processes are killed and frozen on machines that others share: a story that failed once is told again, and said so.
    retry: process.env['CI'] === undefined ? 0 : 2,
    reporters: ['default'],
  },
});

export default config;
