/** Reads all checkpoints of a session in pages, keeps their ids alone, and says how many there are. */
import { Client, Connection } from '@temporalio/client';
import { TemporalSaver } from '../../../src/index.ts';

const [address = '', namespace = '', session = '', size = ''] = process.argv.slice(2);
const connection = await Connection.connect({ address });
const saver = new TemporalSaver(new Client({ connection, namespace }));
const limit = Number(size);
const ids: string[] = [];
let bytes = 0;
for (;;) {
  const before = ids.at(-1);
  const page = await saver.list(session, before === undefined ? { limit } : { limit, before });
  for (const { id, state } of page) {
    ids.push(id);
    bytes += JSON.stringify(state).length;
  }
  if (page.length < limit) break;
}
process.stdout.write(JSON.stringify({ checkpoints: ids.length, distinct: new Set(ids).size, bytes }));
await connection.close();
