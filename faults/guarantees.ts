/** docs/guarantees.md: the table of a run, and beside it in words what is guaranteed, when, and what is not. */
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { POINTS } from './points/index.ts';
import type { RunResult } from './run.ts';
import { lastSoaks, type SoakSummary } from './soaks.ts';
import { type Keys, KIND_TEXT, STEPS, type ToolKind } from './story.ts';
import type { TableRow } from './table.ts';

const PAGE = 'docs/guarantees.md';
/** The run that the page shows. */
const KEPT = 'faults/results/table.json';

/** What the page says of a run. */
export interface KeptTable {
  /** The command that runs it again. */
  readonly command: string;
  readonly runs: number;
  /** A line each. */
  readonly failed: readonly string[];
  /** Effects that were struck between the last fence and the socket by what overtakes, with a service that ignores keys. */
  readonly gapStruck: number;
  readonly rows: readonly TableRow[];
}

/** Kinds whose second effect is never allowed elsewhere. */
const MUTATIONS: readonly ToolKind[] = ['mutate', 'blind', 'global'];

/** What there is to be said of a run. */
export function tableOf(run: {
  command: string;
  results: readonly RunResult[];
  rows: readonly TableRow[];
}): KeptTable {
  const { command, results, rows } = run;
  const gapStruck = results
    .filter(({ story }) => story.step === 'gap' && story.keys === 'ignored')
    .filter(({ story }) => POINTS.find(({ name }) => name === story.point)?.overtakes === true)
    .flatMap(({ outcomes }) => outcomes)
    // Two sessions share a global effect.
    .filter(({ kind, landed }) => MUTATIONS.includes(kind) && landed > 0).length;
  return { command, runs: results.length, failed: failures(results), gapStruck, rows };
}

/** Keeps a run for the page. */
export async function keepTable(table: KeptTable): Promise<void> {
  await mkdir(dirname(KEPT), { recursive: true });
  await writeFile(KEPT, `${JSON.stringify(table, null, 1)}\n`);
}

/** Whether a run is kept for the page. */
export function isTableKept(): boolean {
  return existsSync(KEPT);
}

/** The page of the run that is kept, with the newest soaks. */
export async function guarantees(): Promise<{ path: string; text: string }> {
  const table = JSON.parse(await readFile(KEPT, 'utf8')) as KeptTable;
  return { path: PAGE, text: page(table, await lastSoaks()) };
}

/** Writes the page and returns its path below the working directory. */
export async function writeGuarantees(): Promise<string> {
  const { path, text } = await guarantees();
  await writeFile(path, text);
  return path;
}

/** The command that plans the same run again. */
export function commandLine(words: readonly string[], seed: number): string {
  return `npm run faults -- ${[...words, ...(words.includes('--seed') ? [] : ['--seed', String(seed)])].join(' ')}`;
}

/** What broke a guarantee in a run, or kept its fault from landing: said on the page, not left out. */
function failures(results: readonly RunResult[]): string[] {
  return results
    .filter(({ breaches }) => breaches.length > 0)
    .map(({ story, breaches }) => {
      const names = [...new Set(breaches.map(({ breach }) => breach))].join(', ');
      const [text = ''] = breaches[0]?.text.split('\n') ?? [];
      return `\`${story.point}@${story.step}\`, keys ${story.keys}: ${names}. ${text}`;
    });
}

function verdict({ runs, failed }: KeptTable): string {
  if (failed.length === 0) return `All ${runs} runs passed.`;
  const head = `${runs - failed.length} of the ${runs} runs passed. The others:`;
  return [head, '', ...failed.map((line) => `- ${line}`)].join('\n');
}

function soaked(soak: SoakSummary): string {
  const { stack, struck, runs, seconds, failed, date, command } = soak;
  return `

The last soak that was kept over ${stack === 'postgres' ? 'PostgreSQL' : 'a dev server'} (${date.slice(0, 10)}, \`${command}\`): ${struck} sessions struck in ${runs} runs, in ${Math.round(seconds / 60)} minutes; ${failed.length === 0 ? 'every run passed' : `${failed.length} runs failed`}.`;
}

function page(table: KeptTable, soaks: readonly SoakSummary[]): string {
  const { command, runs, gapStruck, rows } = table;
  const struck = rows.reduce((sum, { landed }) => sum + landed, 0);
  const gap = rows.reduce((sum, row) => sum + row.gap, 0);
  return `<!-- Written by \`npm run faults -- --write-table\`, and without a run by \`--write-page\`. Change faults/guarantees.ts instead. -->

# Guarantees

What a session promises of its effects, under which assumptions, and what nobody can promise. The table at the end
is from a run of the fault lab: ${runs} runs, ${struck} sessions struck by a fault. \`npm run faults\` tries
all of it on your machine, and \`npm run faults -- --soak 1000\` goes on for longer. This run was:

\`\`\`sh
${command}
\`\`\`

${verdict(table)}${soaks.map(soaked).join('')}

## What is guaranteed

| Tool | After any fault of the table |
|---|---|
| \`read\` | has a result, or the model is told the error; it may run more than once |
| \`idempotent\` | the same; it may run more than once, as it says of itself, with one idempotency key |
| \`mutate\` with \`verify\` | at most one dispatch for each recorded *absent*: it is dispatched again only when it is on record that it did not happen and will not: from \`verify\`, from the tool (\`NotAttemptedError\`), from a worker that did not begin it, or from a person |
| \`mutate\` without \`verify\` | never dispatched again by itself once its outcome is open: every open call is put before a person, but for one that its dead worker had certainly not begun |
| \`mutate\`, scope \`global\` | as with and without \`verify\`, for all sessions together: equal calls share one effect and its record |

And for every session, whatever its tools:

- **No stuck session.** It goes on by itself, or waits visibly with a reason and the next command to type.
- **A recorded reply is never paid for again.** A reply that was on its way when its worker died was not recorded; it
  is asked for again, and the lost request is charged at its worst case, because the provider may bill it. A worker that
  is stopped between its last question to Temporal and the request, and wakes later, is in the gap described below.
- **The budget is exact.** Spent is the price of the recorded replies, plus the reserve of each request that was lost,
  as one is that a gateway gave up on (HTTP 408, 504, 522, 524). Any other error status is taken as not billed.
- **No message is lost or taken twice** once \`send\` has returned; one that is sent again under its id is taken once.
- **The history is the state.** The fold of the history, with no worker, is the state that the worker has.
- **Nothing is cut without a word.** A result or a reply up to its limit is on record as it was; a larger result is
  shortened with a notice of its size, and a larger reply refused, charged and asked for again. Neither is sent for ever.
- **A claim is true.** What a session says of a key (landed as this receipt, certainly not done, not known) and what
  the ledger has are one effect in some order that agrees with the clock (linearizability, checked for each key).

## Under which assumptions

- Temporal keeps what it has acknowledged. The lab's server is killed without warning over its file; a power cut may
  take the last moments of a file that is not synced at each step, as with any database.
- \`verify\` tells the truth: *absent* means that it did not happen **and will not**. Its tool's \`settle\` is at least as
  long as a request can still be accepted after its \`abortSignal\`, or after its worker's death; a tool that heeds
  neither the signal nor \`fence()\` may go on until its time-out. The signal comes by itself: at the time-out, at a
  cancellation, and when the worker has not heard from the server for a heartbeat, which is before the server gives
  the call to another. After a person's reset or termination it comes within a quarter of the heartbeat.
- A machine's clocks go on while it is stopped, one of them at least: a virtual machine that is put to sleep with both of
  them takes up to 100 ms of its own time to notice.
- The declared kind is right: a tool that is declared \`read\` or \`idempotent\` can be repeated.
- A tool throws \`NotAttemptedError\` only when nothing has happened.

## What is not guaranteed

- **The gap between the last fence and the socket.** A worker that is stopped there (a frozen process or machine, a
  long pause) and wakes after it was given up still writes its request: no client can take that back. The fence runs
  before the tool and wherever the tool calls \`fence()\`, so the gap is the few instructions after it and
  the request's way ([how long](performance.md#against-the-floor)). (A person's reset
  or termination may come up to 100 ms before the fence and be missed: for so long an answer stands.) What closes it is
  the service: one that honours the idempotency key makes the second request the first one's receipt; or a deadline
  in the request that it enforces. In this run the gap was struck on purpose, for ${gapStruck} mutations with a service
  that ignores keys: ${gap} of them had a second effect. With a service that honours keys it was none.
- **The time of a message in a live view.** Where a workflow task is lost with its worker, and a query comes before the server
  has given the task to another one, that worker may show what the lost task brought with that task's time: up to a
  workflow task's time-out before the one in the history. The record and its checkpoints are right; the session's next
  step notices it, and goes on from the history.
- **Exactly one execution.** A tool may run more than once; what is guaranteed is about effects.
- **An idempotent tool on a service that ignores its key** is repeated after a lost worker. Declare it \`mutate\`.
- **A \`mutate\` without \`verify\`** cannot be decided by anybody but a person who looks.
- **A session that is cancelled while it waits for a \`global\` effect** does not end the effect, which has a workflow of
  its own. The session waits as long as a call of its own may take to settle. If nothing is known then, it says so.
- **Where the successor starts on another host**, a lost call is noticed by its heartbeat (the agent's \`heartbeat\`, 10 s
  by default), not at once.

## How it is measured

Real processes: workers, a Temporal server over a file (for \`database-kill\` and \`database-full\` one over PostgreSQL, with the versions and
settings of docker-compose.yml; \`npm run faults -- --stack postgres --workers 4\` tells all of it there), a payments service with its own durable ledger, a model
endpoint that writes down each request before it answers. In each run one session for each kind of tool (two for
\`global\`, asking for one effect) is brought to the same step of a turn, the fault is injected, and **a run whose fault
cannot be shown to have landed fails**. Sessions of a run share their workers. Judged is what the sessions claim, from
their histories, against the ledger's file and the model's record. *Struck* counts sessions that the fault was shown to
have struck, *to a person* those that asked for one;
the lab's person looks into the ledger and says what is there. *Losses* are claims that are not true, and calls that were
given up though they could be repeated or verified, also where the session says so. *Goes on after* is the median time
from the fault's beginning to the session at rest again, with all that the fault lasts and the start of the next worker
in it, on a machine where the lab itself was running.

A full disk is a limit on the size of files, which needs no privileges and strikes one program: a write fails with EFBIG
where a full disk says ENOSPC. \`database-full\` strikes the write-ahead log: PostgreSQL gives up, and does not start before
there is room. A disk that is full for the tables and not for the log, where PostgreSQL refuses single statements and
lives on, is not shown, for the limit is one for all files of a process.

Threads of checkpoints that are no session are not in the table: \`test/saver/rollover.test.ts\` kills the worker and the
server inside a thread's rollover, before its segment is there, after that, and before the next run's first task. Every
put is there once and in order, also those that were sent again.

The steps:

| Step | |
|---|---|
${Object.entries(STEPS)
  .map(([step, text]) => `| \`${step}\` | ${text} |`)
  .join('\n')}

The faults:

| Fault | |
|---|---|
${POINTS.map(({ name, about, steps }) => `| \`${name}\` | ${about} At: ${steps.join(', ')}. |`).join('\n')}

${section('A service that honours idempotency keys', 'honoured', rows)}

${section('A service that ignores them', 'ignored', rows)}

*In the gap* counts second effects by a request that was between the last fence and the socket, and *repeats* those of
an idempotent call, which says of itself that it may be repeated; neither breaks a guarantee, and both are zero with a service
that honours keys.
`;
}

function section(title: string, keys: Keys, rows: readonly TableRow[]): string {
  const own = rows.filter((row) => row.keys === keys);
  const lines = own.map((row) =>
    [
      '',
      row.point,
      KIND_TEXT[row.kind],
      row.runs,
      row.landed,
      row.duplicates,
      row.losses,
      ...(keys === 'ignored' ? [row.gap, row.repeats] : []),
      row.toPerson,
      row.medianGoOnMs === null ? '' : `${(row.medianGoOnMs / 1_000).toFixed(1)} s`,
      '',
    ]
      .join(' | ')
      .trim(),
  );
  const extra = keys === 'ignored' ? ' In the gap | Repeats |' : '';
  const head = `| Fault | Tool | Runs | Struck | Duplicates | Losses |${extra} To a person | Goes on after |`;
  const rule = `|${'---|'.repeat(keys === 'ignored' ? 10 : 8)}`;
  return [`## ${title}`, '', head, rule, ...lines].join('\n');
}
