import { Client, Connection } from '@temporalio/client';
import { Sessions, TemporalSaver } from 'perdure';

const [sessionId = ''] = process.argv.slice(2);
const address = process.env['TEMPORAL_ADDRESS'] ?? 'localhost:7233';
const connection = await Connection.connect({ address });
const client = new Client({ connection });

const checkpoints = await new TemporalSaver(client).list(sessionId, { limit: 100 });
for (const { id, created_at, metadata } of checkpoints) {
  console.log(id, created_at, metadata['turn'], metadata['phase']);
}
// Starts another session from the latest checkpoint. The first session is not changed.
const [latest] = checkpoints;
if (latest === undefined) throw new Error(`there is no session ${sessionId}`);
const other = await new Sessions(client).fork(
  { sessionId, checkpointId: latest.id },
  { message: 'And eggs.', by: 'ada', reason: 'to try another list' },
);
console.log(`forked into ${other.id}`);
await connection.close();
