/**
 * `npm run faults`: the fault lab. Every fault at every step of a turn, on real processes, judged from the ledger,
 * the model's record and the histories.
 *
 *   npm run faults                              all points, in under five minutes
 *   npm run faults -- --soak 1000               until so many sessions have been struck, by chance
 *   npm run faults -- --stack postgres --workers 4   over PostgreSQL, with so many worker processes
 *   npm run faults -- --only worker-kill@gap    a point, or one step of it; several with commas
 *   npm run faults -- --seed 7                  the schedule of another run
 *   npm run faults -- --write-table             all points with both services, and writes docs/guarantees.md
 *
 * A story by itself: `--keys honoured|ignored --kinds mutate,blind --turns 2 --strike 1 --quiet`, as printed beside
 * a run that failed. Exits with 1 when a guarantee was broken or a fault did not land. Ctrl-C ends it with the
 * table of the stories that were told. The summary of a soak that is worth it stays in faults/results.
 */
import { parseArgs } from 'node:util';
import { commandLine, writeGuarantees } from './guarantees.ts';
import { type Fixed, quickPlan, soakPlan, tellable, whyNot } from './plan.ts';
import { POINTS } from './points/index.ts';
import type { RunResult } from './run.ts';
import { keepSoak } from './soaks.ts';
import { MissingBinaryError } from './stack/binaries.ts';
import { KINDS, STACKS, type Story, type ToolKind } from './story.ts';
import { resultPath, summarize, table, writeResults } from './table.ts';
import { tellAll } from './telling.ts';

/** Second effects that the docs allow, and why. */
const ALLOWED: Readonly<Record<'gap' | 'repeatable', string>> = {
  gap: 'between the last fence and the socket, with a service that ignores keys',
  repeatable: 'of a write, which says that it may be repeated, with a service that ignores keys',
};
/** A soak of fewer sessions says too little to be kept. */
const KEPT_FROM = 100;
/** How many stories are told between two writings of the result file. */
const WRITE_EVERY = 10;

const { values } = parseArgs({
  options: {
    soak: { type: 'string' },
    seed: { type: 'string' },
    only: { type: 'string' },
    keys: { type: 'string' },
    kinds: { type: 'string' },
    turns: { type: 'string' },
    strike: { type: 'string' },
    stack: { type: 'string' },
    workers: { type: 'string' },
    quiet: { type: 'boolean', default: false },
    'write-table': { type: 'boolean', default: false },
  },
});

const seed = values.seed === undefined ? Date.now() % 100_000 : Number(values.seed);
const fixed: Fixed = {
  seed,
  ...(values.only === undefined ? {} : { only: values.only.split(',') }),
  ...(values.keys === undefined
    ? {}
    : { keys: oneOf('keys', values.keys, ['honoured', 'ignored'] as const) }),
  ...(values.kinds === undefined
    ? {}
    : { kinds: values.kinds.split(',').map((kind): ToolKind => oneOf('kinds', kind, KINDS)) }),
  ...(values.turns === undefined ? {} : { turns: Number(values.turns) }),
  ...(values.strike === undefined ? {} : { strike: Number(values.strike) }),
  ...(values.stack === undefined ? {} : { stack: oneOf('stack', values.stack, STACKS) }),
  ...(values.workers === undefined ? {} : { workers: Number(values.workers) }),
  quiet: values.quiet,
};
const stories = plan(fixed);
// The page has every fault: those that need another server are told there, when the others have been.
if (values['write-table'] && fixed.stack === undefined) {
  const elsewhere = { ...fixed, stack: 'postgres' } as const;
  const rest = POINTS.filter(({ needs }) => needs === elsewhere.stack);
  stories.push(...quickPlan(tellable(rest, elsewhere), elsewhere, true));
}
if (stories.length === 0) {
  const names = tellable(POINTS, fixed).flatMap(({ name, steps, soakSteps = [] }) =>
    [...steps, ...soakSteps].map((step) => `${name}@${step}`),
  );
  console.error(`--only ${values.only}: there is no such point on this stack; there are ${names.join(' ')}`);
  process.exit(2);
}
const leftOut = POINTS.filter(({ name }) => !stories.some(({ point }) => point === name));
if (values.only === undefined && values.soak === undefined && leftOut.length > 0)
  console.error(
    `Left out: ${leftOut.map((point) => `${point.name} (${whyNot(point, fixed.stack ?? 'dev')})`).join(', ')}`,
  );
console.error(`${stories.length} stories, seed ${seed}`);

const started = performance.now();
const path = resultPath();
const results: RunResult[] = [];
const stop = new AbortController();
process.once('SIGINT', () => {
  console.error('Ending; once more to end without a table');
  stop.abort();
});
try {
  await tellAll(stories, stop.signal, async (result) => {
    results.push(result);
    console.error(`[${results.length}/${stories.length}, ${seconds().toFixed(0)} s] ${line(result)}`);
    if (results.length % WRITE_EVERY === 0) await write();
  });
} catch (error) {
  if (!(error instanceof MissingBinaryError)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}

const rows = summarize(POINTS, results);
console.log(`\n${table(rows)}\n`);
await write();
console.log(`Written to ${path}`);
const command = commandLine(process.argv.slice(2), seed);
const struck = rows.reduce((sum, { landed }) => sum + landed, 0);
if (values.soak !== undefined && struck >= KEPT_FROM) {
  const kept = await keepSoak({ command, seconds: seconds(), planned: stories.length, results, rows });
  console.log(`Written to ${kept}`);
}
if (values['write-table'] && results.length === stories.length)
  console.log(`Written to ${await writeGuarantees({ command, results, rows })}`);
const failed = results.filter(({ breaches }) => breaches.length > 0);
console.log(
  `${results.length} runs, ${struck} sessions struck, ${failed.length} runs failed, in ${seconds().toFixed(0)} s; seed ${seed}`,
);
if (failed.length > 0) process.exitCode = 1;
// A story that was left at its middle still waits for something.
if (stop.signal.aborted) process.exit();

function plan(by: Fixed): Story[] {
  const points = tellable(POINTS, by);
  return values.soak === undefined
    ? quickPlan(points, by, values['write-table'])
    : soakPlan(points, by, Number(values.soak));
}

function write(): Promise<void> {
  return writeResults(path, { seed, seconds: seconds(), results, rows: summarize(POINTS, results) });
}

function seconds(): number {
  return (performance.now() - started) / 1_000;
}

function line({ story, breaches, allowed, ms, evidence }: RunResult): string {
  const verdict = breaches.length > 0 ? 'FAILED' : allowed.length > 0 ? 'ok, as documented' : 'ok';
  const head = `${story.point}@${story.step}, keys ${story.keys}: ${verdict} in ${(ms / 1_000).toFixed(1)} s (${evidence ?? 'nothing landed'})`;
  const findings = breaches.map(({ breach, text }) => `  ${breach}: ${text}`);
  for (const why of ['gap', 'repeatable'] as const) {
    const effects = allowed.filter((each) => each.allowed === why && each.breach === 'duplicate').length;
    if (effects > 0)
      findings.push(`  ${effects} second ${effects === 1 ? 'effect' : 'effects'}: ${ALLOWED[why]}`);
  }
  return [head, ...findings].join('\n');
}

function oneOf<T extends string>(name: string, given: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === given);
  if (found !== undefined) return found;
  console.error(`--${name} ${given}: write ${choices.join(' or ')}`);
  process.exit(2);
}
