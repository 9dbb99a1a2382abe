/**
 * The demo: an agent refunds an order; its worker dies after the money has moved and before anybody knows.
 *
 *     npm run demo                  the whole story; it approves the refund by itself
 *     npm run demo -- --manual      you approve, from another terminal
 *     npm run demo -- --keep        everything keeps running at the end, to look around
 *     npm run demo -- --scripted    no real model, whatever OPENAI_API_KEY or OPENAI_BASE_URL says
 *
 * The exit code is 0 when everything that it claims was checked and holds, 1 otherwise, 130 after Ctrl-C.
 */
import { parseArgs } from 'node:util';
import { play } from './play.ts';
import { report } from './report.ts';
import { onStage } from './stage.ts';
import { Story } from './story.ts';

const { values: options } = parseArgs({
  options: {
    manual: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    scripted: { type: 'boolean', default: false },
  },
});
const ended = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(name, () => ended.abort(new Error(`Ended by ${name}.`)));
}
// If the terminal was closed, or a pager was left, the demo must still clean up.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', () => ended.abort(new Error('Ended: nobody reads.')));

const story = new Story();
let outcome: number;
story.title('Perdure: a refund, a dead worker, one row in the ledger');
try {
  const holds = await onStage(story, ended.signal, options, async (stage, signal) => {
    const held = await report(story, stage, await play(story, stage, signal, options));
    if (!held) console.error('The demo did not keep its promise: see what says FAIL.');
    return held;
  });
  outcome = holds ? 0 : 1;
} catch (error) {
  console.error(`\n${error instanceof Error ? error.message : String(error)}`);
  outcome = ended.signal.aborted ? 130 : 1;
}
// What was under way may go on in the background: a server being fetched, say.
process.exit(outcome);
