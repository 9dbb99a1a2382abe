/** The floor of a checkpoint store: a workflow that keeps the values of updates, as a sensible user writes it. */
import { condition, defineQuery, defineUpdate, setHandler } from '@temporalio/workflow';

/** Keeps values until it gets the value that ends it. */
export async function store(): Promise<void> {
  const values: unknown[] = [];
  let ended = false;
  setHandler(defineQuery('last'), () => values.at(-1));
  setHandler(defineUpdate<number, [unknown]>('put'), (value) => {
    ended = value === 'end';
    return values.push(value);
  });
  await condition(() => ended);
}
