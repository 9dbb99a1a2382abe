import { fileURLToPath } from 'node:url';
import { defineConfig, type ViteUserConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The test files of these places: `test/core/**` for a folder, `test/bench/{docs,stats}` for files of it. */
function tests(...places: string[]): string[] {
  return places.map((place) => (place.endsWith('**') ? `${place}/*.test.ts` : `${place}.test.ts`));
}

const ALL = ['test/**/*.test.ts', 'examples/**/*.test.ts'];

/** Need no Temporal server: the loop while you write. A test that needs one has none here. */
const FAST = tests(
  'test/activities/**',
  'test/archive/deltas',
  'test/console/{browser,form,item-key}',
  'test/bench/{actions,docs,options,results,stats,usage}',
  'test/chat/writer',
  'test/cli/follow',
  'test/core/**',
  'test/encryption/{aes-gcm,codec-server}',
  'test/examples/{demo-claims,payments}',
  'test/faults/{guarantees,judge,linearize,options,plan,shrink,soaks,trees}',
  'test/rates/limiter.property',
  'test/saver/{diff,langgraph-validation-memory,memory-saver,sqlite-file,sqlite-saver,thread-index}',
  'test/session/history-limit',
  'test/structure/{bootstrap,command-line,errors,projects,rooms,tally}',
  'test/telemetry/unsampled',
  'test/values/directory-values',
  'test/testing/{scripted-model,scripted-model-faults,scripted-model-process,wire}',
);

/** Start servers and commands of their own, write long histories, or wait for several deaths. */
const SLOW = tests(
  'test/archive/**',
  'test/cli/**',
  'test/console/{inbox,people,session}',
  'test/encryption/archive',
  'test/effects/{chapter-experiments,dying-in-task,lost-model,many-deaths}',
  'test/http/{conformance,python,serve}',
  'test/others/{history,resume}',
  'test/saver/{durability,full-thread,long-thread,many-threads,memory,rollover}',
  'test/session/{history-full,queried-task}',
);

/** Need a process that serves no other file: they mock modules, configure Temporal's runtime, or measure their process. */
const APART = tests(
  'examples/**',
  'test/archive/archive-full',
  'test/bench/**',
  'test/examples/**',
  'test/faults/**',
  'test/history/replay-plugin',
  'test/server/**',
  'test/structure/**',
  'test/testing/{conformance,harness}',
  'test/values/{directory-races,postgres-values,s3-races,s3-values}',
);

/** Files that take longest, which their size does not show: begun last, one of them would keep the others waiting. */
const LONG = [
  'test/examples/demo',
  'test/session/new-runs',
  'test/cli/checkpoints',
  'test/core/effect-protocol',
  'test/cli/unanswered',
  'test/archive/order-of-runs',
  'test/archive/archive',
  'test/faults/lab',
  'test/effects/dying-in-task',
  'test/client/versions',
  'test/rates/rate-limits',
  'test/faults/landing',
  'test/cli/sessions',
  'test/console/inbox',
  'test/server/start-server',
  'test/session/stream-follow',
  'test/session/whole-session',
  'test/saver/long-thread',
  'test/effects/frozen-worker',
  'test/structure/built',
  'test/session/flood',
  'test/cli/without-worker',
  'test/client/sessions',
  'test/cli/decisions',
  'test/effects/unbegun-dispatch',
  'test/testing/harness',
  'test/session/races',
  'test/trees/deaths',
  'test/saver/rollover',
  'test/session/history-full',
];

/** Begins with {@link LONG}. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const found = LONG.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`));
      return found === -1 ? LONG.length : found;
    };
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}

/** Projects of one order run together, so that their long files leave no processor idle; those of the next order follow. */
const project = (name: string, order: number, files: object, more: object = {}) => ({
  extends: true as const,
  test: { name, sequence: { groupOrder: order }, ...files, ...more },
});
/** One process serves many files: to load the SDK costs each process a second of processor time. */
const shared = { isolate: false, restoreMocks: true };
const withServer = { globalSetup: ['./test/support/global-setup.ts'] };

const config: ViteUserConfig = defineConfig({
  resolve: {
    // Examples import the package by its name, as a user does, and get the source.
    alias: [
      { find: /^perdure$/, replacement: here('./src/index.ts') },
      { find: /^perdure\/(langgraph|records)$/, replacement: here('./src/saver/$1/index.ts') },
      { find: /^perdure\/(client|archive)$/, replacement: here('./src/$1/door.ts') },
      {
        find: /^perdure\/(encryption|http|chat|mcp|workflows|testing)$/,
        replacement: here('./src/$1/index.ts'),
      },
      // The harness starts processes that were built once for the run.
      { find: /^\.\/worker-process\.ts$/, replacement: here('./test/support/worker-process.ts') },
    ],
  },
  test: {
    projects: [
      project('fast', 0, { include: FAST }, { ...shared, maxWorkers: 5 }),
      project(
        'live',
        0,
        { include: ALL, exclude: [...FAST, ...SLOW, ...APART] },
        // Its tests mostly wait: for retries, time-outs and settle times.
        { ...withServer, ...shared, maxWorkers: 5 },
      ),
      project(
        'slow',
        1,
        { include: SLOW, exclude: [...FAST, ...APART] },
        { ...withServer, ...shared, maxWorkers: 4 },
      ),
      project('apart', 1, { include: APART, exclude: FAST }, { ...withServer, maxWorkers: 4 }),
    ],
    // Processes, not threads: workers hold native handles, and tests kill processes.
    pool: 'forks',
    // A larger young generation, from the start: a seventh of the processor time less.
    execArgv: ['--min-semi-space-size=32', '--max-semi-space-size=32'],
    sequence: { sequencer: LongFirst },
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // The default of a second is over before a busy machine gets to what a test waits for.
    expect: { poll: { timeout: 60_000 } },
    // Processes are killed and frozen on machines that others share: a story that failed once is told again, and said so.
    retry: process.env['CI'] === undefined ? 0 : 2,
    reporters: ['default'],
  },
});

export default config;
