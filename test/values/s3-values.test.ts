import { afterAll, beforeAll, expect, test } from 'vitest';
import { S3Values } from '../../src/index.ts';
import { rejection } from '../support/rejection.ts';
import { NO_S3, type S3Server, startS3 } from '../support/s3.ts';
import { expectOwnership, expectStanding, expectYouth, textIn } from './support/store-behaviour.ts';

const A = 'a'.repeat(64);
let server: S3Server;
beforeAll(async () => {
  if (!NO_S3) server = await startS3();
}, 15 * 60_000);
afterAll(async () => server?.close());

function open(prefix: string): S3Values {
  return new S3Values(server.url(prefix), { credentials: server.credentials });
}

/** The keys below a prefix. */
async function keys(prefix: string): Promise<string[]> {
  const { Contents = [] } = await server.s3.listObjectsV2({ Bucket: server.bucket, Prefix: `${prefix}/` });
  return Contents.map(({ Key = '' }) => Key.slice(prefix.length + 1));
}

test.skipIf(NO_S3)('a value is there until its last owner leaves, and then nothing is left', async () => {
  await expectOwnership(open('ownership/of/x'));
  expect(await keys('ownership/of/x')).toEqual([]);
  await expectOwnership(open(''));
});

test.skipIf(NO_S3)('a value that was stored again is as young as a new one', async () => {
  await expect(expectYouth(open('youth'), 1_000)).resolves.toBeUndefined();
});

test.skipIf(NO_S3)('three that store and remove one value at once: who has stored it, has it', async () => {
  const all = ['p', 'q', 'r'].map((owner) => expectStanding(open('standing'), owner, 20));
  await expect(Promise.all(all)).resolves.toHaveLength(3);
  expect(await keys('standing')).toEqual([]);
});

test.skipIf(NO_S3)('equal bytes of many owners are stored once, whatever the owners are called', async () => {
  const store = open('many');
  const owners = ['default/ä €/😀', `default/${'x'.repeat(600)}`, 'default/..', 'default/a.2Fb'];
  for (const owner of owners) await store.put(A, Buffer.from('one'), owner);
  expect(await store.share(A, 'default/shared')).toBe(true);
  expect((await keys('many')).filter((key) => key.includes('/copies/'))).toHaveLength(1);
  for await (const value of store.list())
    expect(value.owners.sort()).toEqual([...owners, 'default/shared'].sort());
  for (const owner of owners) {
    const own: string[] = [];
    for await (const { digest } of store.list(owner)) own.push(digest);
    expect(own).toEqual([A]);
  }
});

test.skipIf(NO_S3)('a removal that was cut short neither loses a value nor keeps it for ever', async () => {
  const store = open('cut');
  await store.put(A, Buffer.from('one'), 'x');
  const [copy] = (await keys('cut')).filter((key) => key.includes('/copies/'));
  // A process that removed the value has left its note and died.
  const note = { Bucket: server.bucket, Key: `cut/${copy}.leaving.1` };
  await server.s3.putObject({ ...note, Body: ' ' });
  await store.put(A, Buffer.from('one'), 'y');
  // Another has lived, and goes on.
  await server.s3.deleteObject({ Bucket: server.bucket, Key: `cut/${copy}` });
  expect(await textIn(store, A)).toBe('one');
  expect(await store.release(A, 'x')).toBe(false);
  expect(await store.release(A, 'y')).toBe(true);
  expect(await keys('cut')).toEqual([]);
});

test.skipIf(NO_S3)('a bucket that is missing, closed or down is said so, and found again', async () => {
  const { credentials } = server;
  const missing = new S3Values(server.url().replace(server.bucket, 'no-such-bucket'), { credentials });
  await expect(missing.get(A)).rejects.toMatchObject({
    code: 'SERVER_UNAVAILABLE',
    message: expect.stringMatching(/[^.]\. Next: create the bucket$/),
  });
  const wrong = { ...credentials, secretAccessKey: 'hidden-secret' };
  const refused = await rejection(new S3Values(server.url(), { credentials: wrong }).get(A));
  expect(refused).toMatchObject({ code: 'SERVER_UNAVAILABLE' });
  expect(String(refused)).not.toContain('hidden-secret');
  const store = open('down');
  await store.put(A, Buffer.from('one'), 'x');
  await server.kill();
  await expect(store.put(A, Buffer.from('one'), 'y')).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' });
  await server.restart();
  expect(await textIn(store, A)).toBe('one');
});

test.each([
  ['https://x/y', 'write s3://bucket/prefix'],
  ['s3://', 'write s3://bucket/prefix'],
  ['s3://bucket/100%', 'write s3://bucket/prefix'],
  ['s3://key:secret@bucket/prefix', 'Set AWS_ACCESS_KEY_ID'],
  ['s3://bucket?region=eu&pathStyle=true', 'unknown option pathStyle'],
  ['s3://bucket?endpoint=localhost:9000', 'endpoint: write a URL'],
])('the URL %s is refused', (url, why) => {
  expect(() => new S3Values(url)).toThrow(why);
});
