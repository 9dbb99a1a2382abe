/**
 * A scripted model as a separate process:
 *
 *     tsx main.ts --script ./script.ts [--port 0] [--host 127.0.0.1] [--record calls.jsonl] [--lenient] [--with-stdin]
 *
 * The script module exports `script`, a `Script`. When the endpoint is ready, one JSON line `{ url, port, pid }` goes
 * to stdout. `--lenient` turns off the checks of the transcript. With `--with-stdin` the process ends when its stdin
 * ends, so that it never outlives its parent.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { PerdureError } from '../../contract/errors.ts';
import { defined } from '../../contract/json.ts';
import { startScriptedModel } from './server.ts';
import type { Script } from './types.ts';

const { values } = parseArgs({
  options: {
    script: { type: 'string' },
    port: { type: 'string', default: '0' },
    host: { type: 'string', default: '127.0.0.1' },
    record: { type: 'string' },
    lenient: { type: 'boolean', default: false },
    'with-stdin': { type: 'boolean', default: false },
  },
});
if (values.script === undefined) throw new PerdureError('INVALID_ARGUMENT', '--script <module> is missing');
const { script } = (await import(pathToFileURL(resolve(values.script)).href)) as { script?: Script };
if (typeof script !== 'function') {
  throw new PerdureError('INVALID_ARGUMENT', `${values.script} does not export a function named script`);
}

const model = await startScriptedModel({
  script,
  port: Number(values.port),
  host: values.host,
  strict: !values.lenient,
  ...defined({ recordFile: values.record }),
});
const stop = (): void => void model.stop().then(() => process.exit(0));
process.once('SIGTERM', stop).once('SIGINT', stop);
if (values['with-stdin']) process.stdin.resume().once('end', stop);
process.stdout.write(`${JSON.stringify({ url: model.url, port: model.port, pid: process.pid })}\n`);
