/** What every store of values does. */
import { expect } from 'vitest';
import type { StoredValue, ValueStore } from '../../../src/index.ts';

const A = 'a'.repeat(64);
const B = 'b'.repeat(64);

/** What a store holds, as text. */
export async function textIn(store: ValueStore, digest: string): Promise<string | null> {
  const bytes = await store.get(digest);
  return bytes === null ? null : Buffer.from(bytes).toString();
}

export async function listed(store: ValueStore, owner?: string): Promise<StoredValue[]> {
  const found: StoredValue[] = [];
  for await (const value of store.list(owner)) found.push(value);
  return found.sort((a, b) => a.digest.localeCompare(b.digest));
}

/** A value is there until its last owner leaves. */
export async function expectOwnership(store: ValueStore): Promise<void> {
  await store.put(A, Buffer.from('one'), 'default/x');
  await store.put(A, Buffer.from('one'), 'default/y');
  await store.put(B, Buffer.from('other'), 'default/../x');
  expect(await textIn(store, A)).toBe('one');
  expect(await store.has(A, 'default/z')).toBe(false);
  expect(await listed(store)).toMatchObject([
    { digest: A, bytes: 3, owners: expect.arrayContaining(['default/x', 'default/y']) },
    { digest: B, bytes: 5, owners: ['default/../x'] },
  ]);
  expect(await listed(store, 'default/../x')).toMatchObject([{ digest: B }]);
  expect(await store.release(A, 'default/x')).toBe(false);
  expect(await store.has(A, 'default/x')).toBe(false);
  expect(await store.release(A, null)).toBe(false);
  expect(await store.release(A, 'default/y')).toBe(true);
  expect(await store.get(A)).toBeNull();
  expect(await store.share(A, 'default/y')).toBe(false);
  expect(await store.release(B, 'default/../x')).toBe(true);
  expect(await store.release(B, 'default/../x')).toBe(false);
  expect(await listed(store)).toEqual([]);
}

/** A value that is stored again is as young as a new one. `clockMs`: what the store's times are rounded to. */
export async function expectYouth(store: ValueStore, clockMs = 2): Promise<void> {
  await store.put(A, Buffer.from('one'), 'x');
  const [before] = await listed(store);
  await expect.poll(() => Date.now()).toBeGreaterThan((before?.storedAt ?? 0) + clockMs);
  await store.put(A, Buffer.from('one'), 'y');
  expect((await listed(store))[0]?.storedAt).toBeGreaterThan(before?.storedAt ?? 0);
}

/** Stores and releases one value again and again: who has stored it, has it. */
export async function expectStanding(store: ValueStore, owner: string, rounds: number): Promise<void> {
  const digest = 'c'.repeat(64);
  for (let i = 0; i < rounds; i++) {
    await store.put(digest, Buffer.from('shared'), owner);
    const bytes = await store.get(digest);
    if (bytes === null || !(await store.has(digest, owner))) throw new Error(`round ${i}: the value is gone`);
    await store.release(digest, owner);
  }
}
