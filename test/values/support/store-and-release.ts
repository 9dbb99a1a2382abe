/** A process that stores and releases one value, and fails when it does not have what it has stored. */
import { DirectoryValues } from '../../../src/index.ts';

const [, , folder = '', owner = ''] = process.argv;
const digest = 'c'.repeat(64);
const store = new DirectoryValues(folder);
for (let i = 0; i < 100; i++) {
  await store.put(digest, Buffer.from('shared'), owner);
  const bytes = await store.get(digest);
  if (bytes === null || !(await store.has(digest, owner))) throw new Error(`round ${i}: the value is gone`);
  await store.release(digest, owner);
}
process.exit(0);
