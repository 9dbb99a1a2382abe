/**
 * A chat in the browser whose answers survive the death of their worker, a reload of the page, and an hour's wait.
 *
 *     npm run chat
 *
 * It needs no key: the model is scripted. It listens on `PORT`, by default 3000.
 */
import { startChat } from './server.ts';

const chat = await startChat({ port: Number(process.env['PORT'] ?? 3_000) });
console.log(`The chat is at ${chat.url}\nEnd it with Ctrl-C.`);
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.once(name, () => void chat.stop().finally(() => process.exit(0)));
}
