/** The measurements; `main.ts` compiles and starts it. */

import { actions } from './measures/actions.ts';
import { bytes } from './measures/bytes.ts';
import { cold } from './measures/cold.ts';
import { consolePage } from './measures/console.ts';
import { fold } from './measures/fold.ts';
import { gap } from './measures/gap.ts';
import { langgraph } from './measures/langgraph.ts';
import { listing } from './measures/listing.ts';
import { long } from './measures/long.ts';
import { mcp } from './measures/mcp.ts';
import { memory } from './measures/memory.ts';
import { peers } from './measures/peers.ts';
import { pool } from './measures/pool.ts';
import { rates } from './measures/rates.ts';
import { recovery } from './measures/recovery.ts';
import { saver } from './measures/saver.ts';
import { send } from './measures/send.ts';
import { server } from './measures/server.ts';
import { start } from './measures/start.ts';
import { stream } from './measures/stream.ts';
import { trees } from './measures/trees.ts';
import { turns } from './measures/turns.ts';
import { values } from './measures/values.ts';
import { waiting } from './measures/waiting.ts';
import { type MeasureName, readOptions } from './options.ts';
import { othersShare } from './peers/usage.ts';
import { Context, type Measure } from './support/context.ts';
import { readMachine } from './support/machine.ts';
import { quietRuntime } from './support/quiet.ts';
import { KEPT, type Line, SCRATCH, table, writeResults } from './support/report.ts';

const TAKE: Readonly<Record<MeasureName, Measure>> = {
  turns,
  bytes,
  actions,
  fold,
  server,
  recovery,
  gap,
  send,
  stream,
  console: consolePage,
  saver,
  listing,
  langgraph,
  start,
  memory,
  waiting,
  rates,
  trees,
  mcp,
  pool,
  cold,
  values,
  long,
  peers,
};
/**
 * The share of the machine that others may use. Their load makes both sides wait, which brings each ratio nearer to 1.
 */
const OTHERS_AT_MOST = 0.15;

const options = readOptions(process.argv.slice(2));
quietRuntime();
const context = new Context(options);
const lines: Line[] = [];
let interrupted = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  // Servers are separate processes and would stay, so end them first. A second signal must not end this process
  // meanwhile.
  process.on(signal, () => {
    interrupted = true;
    void context.close().finally(() => process.exit(130));
  });
}
try {
  const machine = await readMachine((await context.server()).address);
  const busy: string[] = [];
  for (const name of options.only) {
    console.error(`${name} …`);
    const started = performance.now();
    const share = othersShare();
    const found = await TAKE[name](context);
    // A measure reports failures and continues. A failure because of an interrupt is not a finding.
    if (interrupted) throw new Error('interrupted');
    const others = share();
    lines.push(...(others === undefined ? found : found.map((line) => ({ ...line, others }))));
    const percent = `${((others ?? 0) * 100).toFixed(0)} %`;
    console.error(
      `${name}: ${((performance.now() - started) / 1_000).toFixed(0)} s${others === undefined ? '' : `, others took ${percent} of the machine`}`,
    );
    if (others !== undefined && others > OTHERS_AT_MOST) busy.push(`${name} ${percent}`);
  }
  console.log(`\n${table(lines)}\n`);
  if (Object.keys(context.versions).length > 0) machine.compared = context.versions;
  const whole = !options.quick && options.peers === undefined && options.turns === undefined;
  const idle = busy.length === 0 || options.keepAnyway;
  if (whole && !idle)
    console.error(
      `Others took more than ${OTHERS_AT_MOST * 100} % of the machine (${busy.join(', ')}): not kept; take it again, or with --keep-anyway`,
    );
  const path = await writeResults(whole && idle ? KEPT : SCRATCH, options.what, machine, lines);
  console.log(`Written to ${path}`);
} catch (error) {
  if (!interrupted) throw error;
} finally {
  await context.close();
}
