/** Measures how long Redis itself takes between the two processes, beside our channel and under its load. */
import { createClient } from 'redis';
import { clock } from './clock-model.ts';

/** The stream of the bare entries, each with the time of its writing. */
export const FLOOR = 'floor';
export const FLOOR_MS = 5;

type Reply = [string, [id: string, fields: string[]][]][] | null;

/**
 * Reads bare entries until it is told to stop.
 *
 * @returns a function that stops it, and resolves with the milliseconds from writing to reading
 */
export async function readFloor(url: string): Promise<() => Promise<number[]>> {
  const client = createClient({ url, RESP: 2 });
  await client.connect();
  const delays: number[] = [];
  let isRunning = true;
  const reading = (async () => {
    for (let last = '$'; isRunning; ) {
      const reply = (await client.sendCommand(['XREAD', 'BLOCK', '100', 'STREAMS', FLOOR, last])) as Reply;
      for (const [id, [, at]] of reply?.[0]?.[1] ?? []) {
        delays.push(clock() - Number(at));
        last = id;
      }
    }
  })();
  return async () => {
    isRunning = false;
    await reading;
    client.destroy();
    return delays;
  };
}
