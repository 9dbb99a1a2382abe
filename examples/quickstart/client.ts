import { Client, Connection } from '@temporalio/client';
import { Sessions } from 'perdure';

const address = process.env['TEMPORAL_ADDRESS'] ?? 'localhost:7233';
const connection = await Connection.connect({ address });
const sessions = new Sessions(new Client({ connection }));

const session = await sessions.start('clerk', { message: 'Put milk and bread on my list.' });
for await (const part of session.stream({ since: 'start' })) {
  if (part.type === 'text') process.stdout.write(part.text);
}
const { spent } = await session.budget();
console.log(`\n${session.id}: ${spent.turns} turns, ${spent.inputTokens + spent.outputTokens} tokens`);
await connection.close();
