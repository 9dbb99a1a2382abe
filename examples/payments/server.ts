/**
 * The payments service as a process:
 *
 *     tsx examples/payments/server.ts --ledger FILE [--port 0] [--host 127.0.0.1] [--ignore-keys] [--with-stdin]
 *
 * When it is ready one JSON line `{ url, port, pid }` goes to stdout. `--ignore-keys`: every POST is another
 * effect, whatever its key. With `--with-stdin` the process ends when its stdin does.
 */
import { parseArgs } from 'node:util';
import { startPayments } from './service.ts';

const { values } = parseArgs({
  options: {
    ledger: { type: 'string' },
    port: { type: 'string', default: '0' },
    host: { type: 'string', default: '127.0.0.1' },
    'ignore-keys': { type: 'boolean', default: false },
    'with-stdin': { type: 'boolean', default: false },
  },
});
if (values.ledger === undefined) throw new Error('--ledger <file> is missing');

const service = await startPayments({
  ledger: values.ledger,
  port: Number(values.port),
  host: values.host,
  honourKeys: !values['ignore-keys'],
});
const stop = (): void => void service.stop().then(() => process.exit(0));
process.once('SIGTERM', stop).once('SIGINT', stop);
if (values['with-stdin']) process.stdin.resume().once('end', stop);
console.log(JSON.stringify({ url: service.url, port: service.port, pid: process.pid }));
