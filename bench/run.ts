/** The measurements; `main.ts` compiles and starts it. */

import { parseArgs } from 'node:util';
import { bytes } from './measures/bytes.ts';
import { fold } from './measures/fold.ts';
import { langgraph } from './measures/langgraph.ts';
import { listing } from './measures/listing.ts';
import { memory } from './measures/memory.ts';
import { peers } from './measures/peers.ts';
import { recovery } from './measures/recovery.ts';
import { saver } from './measures/saver.ts';
import { server } from './measures/server.ts';
import { start } from './measures/start.ts';
import { turns } from './measures/turns.ts';
import { Context, type Measure } from './support/context.ts';
import { writeDocs } from './support/docs.ts';
import { readMachine } from './support/machine.ts';
import { quietRuntime } from './support/quiet.ts';
import { type Line, table, writeResults } from './support/report.ts';

const MEASURES: Readonly<Record<string, Measure>> = {
  turns,
  bytes,
  fold,
  server,
  recovery,
  saver,
  listing,
  langgraph,
  start,
  memory,
  peers,
};

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    peers: { type: 'string' },
    quick: { type: 'boolean', default: false },
    'write-docs': { type: 'boolean', default: false },
  },
});
if (values['write-docs']) {
  console.log(`Written: ${(await writeDocs()).join(', ')}`);
  process.exit(0);
}
const names = values.only?.split(',') ?? Object.keys(MEASURES);
const unknown = names.filter((name) => MEASURES[name] === undefined);
if (unknown.length > 0) {
  console.error(
    `--only ${unknown.join(',')}: there is no such measure; write some of ${Object.keys(MEASURES).join(',')}`,
  );
  process.exit(2);
}

quietRuntime();
const context = new Context({ quick: values.quick, peers: values.peers?.split(',') });
const lines: Line[] = [];
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // Servers are processes of their own, and would stay.
  process.once(signal, () => void context.close().finally(() => process.exit(130)));
}
try {
  const machine = await readMachine((await context.server()).address);
  for (const name of names) {
    console.error(`${name} …`);
    const started = performance.now();
    lines.push(...((await MEASURES[name]?.(context)) ?? []));
    console.error(`${name}: ${((performance.now() - started) / 1_000).toFixed(0)} s`);
  }
  console.log(`\n${table(lines)}\n`);
  if (Object.keys(context.versions).length > 0) machine.compared = context.versions;
  const what = values.only === undefined ? 'all' : names.join('-');
  console.log(`Written to ${await writeResults(what, values.quick, machine, lines)}`);
} finally {
  await context.close();
}
