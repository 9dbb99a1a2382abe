/**
 * `npm run faults`: the fault lab. Every fault at every step of a turn, on real processes, judged from the ledger,
 * the model's record and the histories.
 *
 *   npm run faults                              all points, in under five minutes
 *   npm run faults -- --soak 1000               until so many sessions have been struck, by chance
 *   npm run faults -- --only worker-kill@gap    a point, or one step of it; several with commas
 *   npm run faults -- --seed 7                  the schedule of another run
 *   npm run faults -- --write-table             all points with both services, and writes docs/guarantees.md
 *
 * A story by itself: `--keys honoured|ignored --kinds mutate,blind --turns 2 --strike 1 --quiet`, as printed beside
 * a run that failed. Exits with 1 when a guarantee was broken or a fault did not land.
 */
import { parseArgs } from 'node:util';
import { writeGuarantees } from './guarantees.ts';
import { openLane } from './lane.ts';
import { type Fixed, quickPlan, soakPlan } from './plan.ts';
import { POINTS } from './points/index.ts';
import { type RunResult, tell } from './run.ts';
import { shrink } from './shrink.ts';
import { commandOf, type Keys, KINDS, type Story, type ToolKind } from './story.ts';
import { summarize, table, writeResults } from './table.ts';

/** Second effects that the docs allow, and why. */
const ALLOWED: Readonly<Record<'gap' | 'repeatable', string>> = {
  gap: 'between the last fence and the socket, with a service that ignores keys',
  repeatable: 'of a write, which says that it may be repeated, with a service that ignores keys',
};

const { values } = parseArgs({
  options: {
    soak: { type: 'string' },
    seed: { type: 'string' },
    only: { type: 'string' },
    keys: { type: 'string' },
    kinds: { type: 'string' },
    turns: { type: 'string' },
    strike: { type: 'string' },
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
  quiet: values.quiet,
};
const stories =
  values.soak === undefined
    ? quickPlan(POINTS, fixed, values['write-table'])
    : soakPlan(POINTS, fixed, Number(values.soak));
if (stories.length === 0) {
  const names = POINTS.flatMap(({ name, steps, soakSteps = [] }) =>
    [...steps, ...soakSteps].map((step) => `${name}@${step}`),
  );
  console.error(`--only ${values.only}: there is no such point; there are ${names.join(' ')}`);
  process.exit(2);
}
console.error(`${stories.length} stories, seed ${seed}`);
const started = performance.now();
// The two services side by side: each has a server and a queue of stories of its own.
const results = (
  await Promise.all((['honoured', 'ignored'] as const).map((keys) => runLane(keys, stories)))
).flat();
const seconds = (performance.now() - started) / 1_000;

const rows = summarize(POINTS, results);
console.log(`\n${table(rows)}\n`);
console.log(`Written to ${await writeResults({ seed, seconds, results, rows })}`);
if (values['write-table'])
  console.log(`Written to ${await writeGuarantees({ command: process.argv.slice(2), seed, results, rows })}`);
const failed = results.filter(({ breaches }) => breaches.length > 0);
const struck = rows.reduce((sum, { landed }) => sum + landed, 0);
console.log(
  `${results.length} runs, ${struck} sessions struck, ${failed.length} runs failed, in ${seconds.toFixed(0)} s; seed ${seed}`,
);
if (failed.length > 0) process.exitCode = 1;

async function runLane(keys: Keys, all: readonly Story[]): Promise<RunResult[]> {
  const own = all.filter((story) => story.keys === keys);
  if (own.length === 0) return [];
  const lane = await openLane(keys);
  const told: RunResult[] = [];
  try {
    const play = async (story: Story): Promise<RunResult> => {
      const point = POINTS.find(({ name }) => name === story.point);
      if (point === undefined) throw new Error(`no point ${story.point}`);
      return tell(point, story, lane);
    };
    for (const story of own) {
      const result = await play(story);
      told.push(result);
      console.error(line(result));
      if (result.breaches.length > 0) {
        const smallest = await shrink(story, async (each) => (await play(each)).breaches.length > 0);
        console.error(
          smallest === null
            ? `  it did not fail a second time; to try again: ${commandOf(story)}`
            : `  again: ${commandOf(smallest)}`,
        );
      }
    }
  } finally {
    await lane.close();
  }
  return told;
}

function line({ story, breaches, allowed, ms, evidence }: RunResult): string {
  const verdict = breaches.length > 0 ? 'FAILED' : allowed.length > 0 ? 'ok, as documented' : 'ok';
  const head = `${story.point}@${story.step}, keys ${story.keys}: ${verdict} in ${(ms / 1_000).toFixed(1)} s (${evidence ?? 'nothing landed'})`;
  const findings = breaches.map(({ breach, text }) => `  ${breach}: ${text}`);
  for (const why of ['gap', 'repeatable'] as const) {
    const effects = allowed.filter((each) => each.allowed === why && each.breach === 'duplicate').length;
    if (effects > 0) findings.push(`  ${effects} second effects: ${ALLOWED[why]}`);
  }
  return [head, ...findings].join('\n');
}

function oneOf<T extends string>(name: string, given: string, choices: readonly T[]): T {
  const found = choices.find((choice) => choice === given);
  if (found !== undefined) return found;
  console.error(`--${name} ${given}: write ${choices.join(' or ')}`);
  process.exit(2);
}
