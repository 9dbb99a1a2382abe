/**
 * What a waiting session weighs in PostgreSQL, and what a million of them would: the numbers of docs/sizing.md.
 *
 *   npx tsx faults/sizing/main.ts 300 10     so many sessions of each kind, so many turns of the longer ones
 *
 * Sessions wait for a person's approval: some after one model call, others after some turns with a tool that
 * answers 1 KB. The tables are weighed before and after `VACUUM FULL`, which removes all free space.
 */
import { createHarness, type Harness } from 'perdure/testing';
import { openStack, type Stack } from '../stack/index.ts';

const AT_ONCE = 20;
const MILLION = 1_000_000;
/** Rows to weigh visibility with. */
const COPIES = 20_000;
const VISIBILITY = 'temporal_visibility.executions_visibility';
const PATIENCE_MS = 600_000;
const DATABASES = ['temporal', 'temporal_visibility'] as const;

/** Bytes and rows of a table. */
interface Weight {
  readonly rows: number;
  readonly bytes: number;
}

const [count = 300, turns = 10] = process.argv.slice(2).map(Number);

const stack = await openStack((line) => console.error(line));
const harness = await createHarness({
  module: new URL('./agents.ts', import.meta.url),
  server: stack,
  timeoutMs: PATIENCE_MS,
  script: ({ assistantCount, messages }) => {
    const reads = Number(messages.find(({ role }) => role === 'user')?.text.split(' ')[0]);
    const usage = { inputTokens: 100, outputTokens: 10 };
    return assistantCount < reads
      ? { toolCalls: [{ name: 'look', args: { page: assistantCount } }], usage }
      : { toolCalls: [{ name: 'sign', args: { name: 'me' } }], usage };
  },
});
try {
  await harness.startWorkerProcess();
  // The first sessions also create rows that exist only once.
  await wait(harness, 'warm', 5, 1);
  const empty = await weigh(stack);
  await wait(harness, 'short', count, 0);
  const short = await weigh(stack);
  await wait(harness, 'long', count, turns);
  const long = await weigh(stack);
  report(empty, short, long, await visibilityRow(stack));
} finally {
  await harness.stop();
  await stack.stop();
}
process.exit(0);

/** Starts sessions and waits until all of them wait for a person. */
async function wait(harness: Harness, name: string, many: number, reads: number): Promise<void> {
  const message = `${reads} turns. ${'y'.repeat(1_000)}`;
  for (let first = 0; first < many; first += AT_ONCE) {
    const ids = Array.from({ length: Math.min(AT_ONCE, many - first) }, (_, i) => `${name}-${first + i}`);
    await Promise.all(
      ids.map(async (id) =>
        harness.until(await harness.sessions.start('clerk', { id, message }), 'approval'),
      ),
    );
    console.error(`${name}: ${first + ids.length} of ${many} wait`);
  }
}

/** The weight of each table, by `database.table`, and how much larger all tables were before they were packed. */
async function weigh({ database }: Stack): Promise<{ full: Map<string, Weight>; slack: number }> {
  const full = new Map<string, Weight>();
  const sizes: number[][] = [];
  for (const name of DATABASES) {
    const size = async (): Promise<number> =>
      Number((await database.query(name, 'select pg_database_size(current_database())'))[0]?.[0]);
    const before = await size();
    await database.query(name, 'VACUUM FULL');
    sizes.push([before, await size()]);
    await database.query(name, 'ANALYZE');
    const rows = await database.query(
      name,
      `select relname, pg_total_relation_size(oid), greatest(reltuples, 0)
       from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
    );
    for (const [table, bytes, tuples] of rows)
      full.set(`${name}.${table}`, { rows: Number(tuples), bytes: Number(bytes) });
  }
  const sum = (at: number): number => sizes.reduce((all, pair) => all + (pair[at] ?? 0), 0);
  return { full, slack: sum(0) / sum(1) };
}

type Weights = Awaited<ReturnType<typeof weigh>>;

/**
 * Bytes of a session's row in visibility, in a table large enough for its indexes: a few hundred rows leave most of
 * their first pages empty. The rows are copies of the sessions' own, under other run ids and times.
 */
async function visibilityRow({ database }: Stack): Promise<number> {
  const query = (sql: string): Promise<string[][]> => database.query('temporal_visibility', sql);
  const columns = await query(
    `select quote_ident(column_name) from information_schema.columns
     where table_name = 'executions_visibility' and is_generated = 'NEVER'`,
  );
  const names = columns.flat();
  const copied = names.map((name) => {
    if (name === 'run_id' || name === 'workflow_id') return 'gen_random_uuid()::text';
    return name === 'start_time' ? "start_time + random() * interval '30 days'" : name;
  });
  await query(
    `insert into executions_visibility (${names.join()}) select ${copied.join()}
     from executions_visibility, generate_series(1, ${COPIES} / greatest(1, (select count(*) from executions_visibility)))`,
  );
  await query('VACUUM FULL');
  const [size] = await query(
    "select pg_total_relation_size('executions_visibility') / count(*) from executions_visibility",
  );
  return Number(size?.[0]);
}

function report(empty: Weights, short: Weights, long: Weights, visibility: number): void {
  const per = (from: Weights, to: Weights, table: string, of: keyof Weight): number =>
    ((to.full.get(table)?.[of] ?? 0) - (from.full.get(table)?.[of] ?? 0)) / count;
  console.log(`\n| Table | Rows of a session | Bytes of a session | Rows of ${turns} turns more | Bytes |`);
  console.log('|---|---|---|---|---|');
  const total = { shortRows: 0, shortBytes: 0, longRows: 0, longBytes: 0 };
  for (const table of [...long.full.keys()].sort()) {
    if (table === VISIBILITY) continue;
    const cells = [
      per(empty, short, table, 'rows'),
      per(empty, short, table, 'bytes'),
      per(short, long, table, 'rows'),
      per(short, long, table, 'bytes'),
    ] as const;
    // A table that does not grow with the sessions does not count.
    if (cells[1] < 20 && cells[3] < 20) continue;
    const [shortRows, shortBytes, longRows, longBytes] = cells;
    total.shortRows += shortRows;
    total.shortBytes += shortBytes;
    total.longRows += longRows - shortRows;
    total.longBytes += longBytes - shortBytes;
    console.log(
      `| \`${table}\` | ${shortRows.toFixed(1)} | ${shortBytes.toFixed(0)} | ${(longRows - shortRows).toFixed(1)} | ${(longBytes - shortBytes).toFixed(0)} |`,
    );
  }
  total.shortRows += 1;
  total.shortBytes += visibility;
  console.log(`| \`${VISIBILITY}\` | 1.0 | ${visibility} | 0.0 | 0 |`);
  console.log(
    `| all | ${total.shortRows.toFixed(1)} | ${total.shortBytes.toFixed(0)} | ${total.longRows.toFixed(1)} | ${total.longBytes.toFixed(0)} |`,
  );
  const gb = (bytes: number): string => `${((bytes * MILLION) / 1e9).toFixed(1)} GB`;
  const perTurn = total.longBytes / turns;
  console.log(
    `\n${count} sessions of each kind. A turn: ${perTurn.toFixed(0)} bytes. Before VACUUM FULL: ${long.slack.toFixed(2)} times that.`,
  );
  for (const each of [0, 10, 100])
    console.log(
      `A million that wait after ${each} turns: ${gb(total.shortBytes + each * perTurn)} in tables and indexes, ${(total.shortRows + (each * total.longRows) / turns).toFixed(0)} million rows`,
    );
}
