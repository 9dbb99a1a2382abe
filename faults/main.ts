/**
 * `npm run faults`: the fault lab. Every fault at every step of a turn, on real processes, judged from the ledger,
 * the model's record and the histories. `--help` lists its options.
 *
 * Exits with 1 when a guarantee was broken or a fault did not land. The summary of a long enough soak is stored in
 * faults/results.
 */
import { commandLine, isTableKept, keepTable, tableOf, writeGuarantees } from './guarantees.ts';
import { HELP, type LabOptions, OptionError, readOptions } from './options.ts';
import { type Fixed, quickPlan, soakPlan, tellable, whyNot } from './plan.ts';
import { POINTS } from './points/index.ts';
import type { RunResult } from './run.ts';
import { keepSoak } from './soaks.ts';
import { MissingBinaryError } from './stack/binaries.ts';
import type { Story } from './story.ts';
import { resultPath, summarize, table, writeResults } from './table.ts';
import { tellAll } from './telling.ts';

/** Second effects that the docs allow, and why. */
const ALLOWED: Readonly<Record<'gap' | 'repeatable', string>> = {
  gap: 'between the last fence and the socket, with a service that ignores keys',
  repeatable: 'of an idempotent call, which says that it may be repeated, with a service that ignores keys',
};
/** A soak of fewer sessions proves too little to be stored. */
const KEPT_FROM = 100;
/** How many stories run between two writes of the result file. */
const WRITE_EVERY = 10;

const { fixed, soak, writeTable, writePage, help } = optionsOrExit();
if (help) {
  console.log(HELP);
  process.exit();
}
if (writePage) {
  console.log(`Written to ${await writeGuarantees()}`);
  process.exit();
}
const { seed, stack = 'dev' } = fixed;
const stories = plan(fixed);
// The page has every fault: those that need another server run after the others, on that server.
if (writeTable && fixed.stack === undefined) {
  const elsewhere = { ...fixed, stack: 'postgres' } as const;
  const rest = POINTS.filter(({ needs }) => needs === elsewhere.stack);
  stories.push(...quickPlan(tellable(rest, elsewhere), elsewhere, true));
}
const unknown = (fixed.only ?? []).find((name) => !names(fixed).includes(name));
if (unknown !== undefined)
  refuse(`--only ${unknown}: there is no such point on this stack; there are ${names(fixed).join(' ')}`);
if (stories.length === 0)
  refuse(`--kinds ${fixed.kinds?.join(',')}: what was asked for strikes none of them`);
const leftOut = POINTS.filter(({ name }) => !stories.some(({ point }) => point === name));
if (fixed.only === undefined && soak === null && leftOut.length > 0)
  console.error(
    `Left out: ${leftOut.map((point) => `${point.name} (${whyNot(point, stack) ?? 'it strikes none of these kinds'})`).join(', ')}`,
  );
console.error(`${stories.length} stories, seed ${seed}`);

const started = performance.now();
const path = resultPath(stack);
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
const keptSoak = soak !== null && struck >= KEPT_FROM;
if (keptSoak) {
  const kept = await keepSoak({ stack, command, seconds: seconds(), planned: stories.length, results, rows });
  console.log(`Written to ${kept}`);
}
const wholeTable = writeTable && results.length === stories.length;
if (wholeTable) await keepTable(tableOf({ command, results, rows }));
// The page names the newest soak, too.
if (wholeTable || (keptSoak && isTableKept())) console.log(`Written to ${await writeGuarantees()}`);
const failed = results.filter(({ breaches }) => breaches.length > 0);
console.log(
  `${results.length} runs, ${struck} sessions struck, ${failed.length} runs failed, in ${seconds().toFixed(0)} s; seed ${seed}`,
);
if (failed.length > 0) process.exitCode = 1;
// An interrupted story still waits for something, and would keep the process alive.
if (stop.signal.aborted) process.exit();

function plan(by: Fixed): Story[] {
  const points = tellable(POINTS, by);
  return soak === null ? quickPlan(points, by, writeTable) : soakPlan(points, by, soak);
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

/** What `--only` may name. */
function names(by: Fixed): string[] {
  return tellable(POINTS, by).flatMap(({ name, steps, soakSteps = [] }) => [
    name,
    ...[...steps, ...soakSteps].map((step) => `${name}@${step}`),
  ]);
}

function optionsOrExit(): LabOptions {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    if (error instanceof OptionError) return refuse(error.message);
    throw error;
  }
}

function refuse(message: string): never {
  console.error(message);
  process.exit(2);
}
