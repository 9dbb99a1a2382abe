/** Writes docs/guarantees.md: the table of a run, with a text that says what is guaranteed, when, and what is not. */
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

/** What the page says about a run. */
export interface KeptTable {
  /** The command that repeats the run. */
  readonly command: string;
  readonly runs: number;
  /** One line each. */
  readonly failed: readonly string[];
  /**
   * Effects that an overtaking fault struck between the last fence and the socket, with a service that ignores keys.
   */
  readonly gapStruck: number;
  readonly rows: readonly TableRow[];
}

/** Kinds for which a second effect is never allowed outside the gap. */
const MUTATIONS: readonly ToolKind[] = ['mutate', 'blind', 'global'];

/** The table of a run. */
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

/** Stores a run for the page. */
export async function keepTable(table: KeptTable): Promise<void> {
  await mkdir(dirname(KEPT), { recursive: true });
  await writeFile(KEPT, `${JSON.stringify(table, null, 1)}\n`);
}

/** Whether a run is stored for the page. */
export function isTableKept(): boolean {
  return existsSync(KEPT);
}

/** The page of the stored run, with the newest soaks. */
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

/** The command that repeats the plan of a run. */
export function commandLine(words: readonly string[], seed: number): string {
  const turns = process.env['LAB_RUN_TURNS'];
  const set = turns === undefined ? '' : `LAB_RUN_TURNS=${turns} `;
  return `${set}npm run faults -- ${[...words, ...(words.includes('--seed') ? [] : ['--seed', String(seed)])].join(' ')}`;
}

/** What broke a guarantee in a run, or kept its fault from landing. The page shows it. */
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

What a session guarantees about its effects, under which assumptions, and what nobody can guarantee. The tables at the end
come from a run of the fault lab: ${runs} runs, ${struck} sessions struck by a fault. \`npm run faults\` tries
all of it on your machine, and \`npm run faults -- --soak 1000\` runs longer. This run was:

\`\`\`sh
${command}
\`\`\`

${verdict(table)}${soaks.map(soaked).join('')}

## What is guaranteed

| Tool | After any fault of the table |
|---|---|
| \`read\` | has a result, or the model is told the error; it may run more than once |
| \`idempotent\` | the same; it may run more than once, with one idempotency key |
| \`mutate\` with \`verify\` | dispatched again only after a recorded *absent*: it did not happen and will not. The record comes from \`verify\`, from the tool (\`NotAttemptedError\`), from a worker that did not begin the call, or from a person |
| \`mutate\` without \`verify\` | an unknown call waits for a person and is never dispatched again by itself, unless its dead worker had certainly not begun it |
| \`mutate\`, scope \`global\` | as with and without \`verify\`, for all sessions together: equal calls share one effect and its record |

And for every session, whatever its tools:

- **No stuck session.** It continues by itself, or waits visibly with a reason and the next command.
- **A recorded reply is never paid for again.** If the worker dies before a reply is recorded, the
  model is asked again. The lost request is charged at its worst case, because the provider may bill it. A worker that
  freezes between its last fence and the request is in the gap described below.
- **The budget is exact.** Spent is the price of the recorded replies, plus the reserve of each lost request. A gateway's
  time-out (HTTP 408, 504, 522, 524) counts as lost. Any other error status counts as not billed.
- **No message is lost or taken twice** once \`send\` has returned. A message that is sent again with its id is taken once.
- **The history is the state.** The state that is computed from the history, without a worker, is the worker's state.
- **Nothing is shortened silently.** A result over the limit is shortened, with a notice of its size. A reply over the limit
  is refused and charged, and the model is asked again.
- **A tree agrees with its sessions.** A sub-agent is started once, and its answer or report reaches its caller once. A
  sub-agent in the background whose caller is cancelled, or ends with \`atEnd: 'cancel'\`, is cancelled and not reported.
  The tree has used what its sessions have used together, and the pool of its caps says the same. The lab strikes trees of
  three levels, with sub-agents in the foreground and in the background, whose sessions continue in a new run after each turn.
- **Claims are true.** What a session says of a key (landed, absent or unknown) agrees with the service's ledger and with
  the clock (linearizability, checked for each key).

## Under which assumptions

- Temporal keeps what it has acknowledged. The lab kills its server without warning. A power cut can lose the last moments
  of a file that is not synced at each step, as with any database.
- \`verify\` tells the truth: *absent* means that it did not happen **and will not**. Its tool's \`settle\` is at least as
  long as the service can still accept a request after its \`abortSignal\`, or after its worker's death. A tool that ignores
  the signal and \`fence()\` can run until its time-out. The signal aborts at the time-out, at a cancellation, and when the
  worker has not heard from the server for a heartbeat, which is before the server gives the call to another worker. After
  a person's reset or termination it aborts within a quarter of the heartbeat.
- While a machine is stopped, at least one of its clocks continues. If both stop, as in a suspended virtual machine, the
  worker needs up to 100 ms of its own time to notice.
- The declared effect is right: a tool that is declared \`read\` or \`idempotent\` can be repeated.
- A tool throws \`NotAttemptedError\` only when nothing has happened.
- A service's answer is true. An MCP server that says *done* is believed, unless its tool asks \`verify\` to
  [confirm](mcp.md#what-a-call-does-to-the-world) the answers.

## What is not guaranteed

- **The gap between the last fence and the socket.** A worker that freezes there, and wakes after its call was given
  up, still sends its request. No client can prevent that. The fence runs before the tool and wherever the tool calls
  \`fence()\`, so the gap is a few instructions and the request's time on the network
  ([how long](performance.md#against-the-floor)). The fence trusts an answer for 100 ms, so it can miss a person's reset or
  termination in that time. Only the service can close the gap: it honours the idempotency key, or it refuses a request
  after its deadline. This run struck the gap on purpose, for ${gapStruck} mutations with a service that ignores keys:
  ${gap} of them had a second effect. With a service that honours keys, none had.
- **The time of a message in a live view.** When a worker dies in a workflow task, a query that comes before another worker
  has the task can show its messages with a time that is too early, by up to a workflow task's time-out. The history and its
  checkpoints are right, and the session's next step corrects the view.
- **Exactly one execution.** A tool can run more than once. The guarantees are about effects.
- **An idempotent tool on a service that ignores its key** is repeated after a lost worker. Declare it \`mutate\`.
- **A \`mutate\` without \`verify\`** can only be settled by a person.
- **A session that is cancelled while it waits for a \`global\` effect** does not end the effect, which has its own
  workflow. The session waits as long as one of its own calls may take to settle. If the outcome is still unknown then, it
  says so.
- **Fast recovery on another host.** There, only a missed heartbeat shows that a call is lost (the agent's \`heartbeat\`, 10 s
  by default).

## How it is measured

The lab runs real processes: workers, a Temporal server over a file, a payments service with its own durable ledger, and a
model endpoint that records each request before it answers. For \`database-kill\` and \`database-full\` the server runs over
PostgreSQL, with the versions and settings of docker-compose.yml. \`npm run faults -- --stack postgres --workers 4\` runs
every fault there.

In each run, the lab brings one session for each kind of tool (two for \`global\`, which share one effect) to the same
step of a turn, and injects the fault. The sessions of a run share their workers. **A run fails if the lab cannot show that
the fault landed.** Then the lab compares what the sessions claim in their histories with the ledger's file and the model's
record.

| Column | Counts |
|---|---|
| Struck | sessions for which the lab can show that the fault struck |
| To a person | sessions that asked a person. The lab's person reads the ledger and says what is there |
| Losses | false claims, and calls that were given up though they could be repeated or verified |
| Goes on after | the median time from the start of the fault until the session waits for a message again. It includes the fault itself and the start of the next worker, on a machine that also runs the lab |

A full disk is simulated by a limit on the size of files, which needs no privileges and strikes one program: a write fails
with EFBIG, where a full disk says ENOSPC. \`database-full\` strikes the write-ahead log: PostgreSQL stops, and does not
start until there is room. The lab cannot simulate a disk that is full for the tables but not for the log.

Threads of checkpoints that are not sessions are not in the table: \`test/saver/rollover.test.ts\` kills the worker and the
server at each step of a thread's rollover, and finds every put once and in order.

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

*In the gap* counts second effects by a request that was between the last fence and the socket. *Repeats* counts those of
idempotent calls. Neither breaks a guarantee, and both are zero with a service that honours keys.
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
