/** The parts of a conformance run: the saver under test, and the test runner. */
import assert from 'node:assert/strict';
import type { Checkpoint, CheckpointSaver } from '../../contract/checkpoint.ts';
import { isPerdureError } from '../../contract/errors.ts';
import type { JsonObject } from '../../contract/json.ts';

/** The saver under test. */
export interface SaverUnderTest {
  /** Names the run in reports. */
  name: string;
  /**
   * Creates a saver for one test. It may still hold what other tests have stored: every test uses threads of its own.
   *
   * @param clock - `now` is the tests' clock, which also steps back. A saver with its own clock ignores it.
   */
  create: (clock: { now: () => number }) => Promise<CheckpointSaver> | CheckpointSaver;
  /** Creates a second saver on the same data, as after a restart. Leave it out for a saver that keeps nothing. */
  reopen?: (saver: CheckpointSaver) => Promise<CheckpointSaver> | CheckpointSaver;
  /** Removes a saver that `create` or `reopen` returned, after its test. */
  destroy?: (saver: CheckpointSaver) => Promise<void> | void;
  /** Called once before the first test, and after the last. */
  beforeAll?: () => Promise<void> | void;
  afterAll?: () => Promise<void> | void;
  /** How many puts the tests of order and paging store. Default: 25. */
  many?: number;
}

/** The test runner's functions, as in vitest or jest. In mocha and `node:test` the hooks are `before` and `after`. */
export interface Runner {
  describe: (name: string, body: () => void) => unknown;
  it: (name: string, body: () => Promise<void>) => unknown;
  /** Needed when the saver has the hook of the same name. */
  beforeAll?: (body: () => Promise<void>) => unknown;
  afterAll?: (body: () => Promise<void>) => unknown;
}

/** The context of one test. */
export interface SpecContext {
  saver: CheckpointSaver;
  /** A thread id that no other test has. */
  thread: string;
  /** Returns further thread ids that no other test has. */
  otherThread: (suffix: string) => string;
  clock: { set: (ms: number) => void };
  /** A second saver on the same data. Only for savers with a `reopen` hook. */
  reopen: () => Promise<CheckpointSaver>;
  many: number;
}

/** Declares the tests of one method. */
export type Spec = (
  test: (name: string, body: (context: SpecContext) => Promise<void>) => void,
  subject: SaverUnderTest,
) => void;

/** The ids of checkpoints, in their order. */
export function ids(checkpoints: readonly Checkpoint[]): string[] {
  return checkpoints.map(({ id }) => id);
}

/** Stores `count` checkpoints one after the other; state `n` is `{ n }`. */
export async function putMany(saver: CheckpointSaver, thread: string, count: number): Promise<Checkpoint[]> {
  const stored: Checkpoint[] = [];
  for (let n = 0; n < count; n++) {
    stored.push(await saver.put(thread, { n }, { parentId: stored.at(-1)?.id ?? null }));
  }
  return stored;
}

/** Asserts that a call rejects with a PerdureError of this code. */
export async function refuses(call: Promise<unknown>, code: string, mentions = ''): Promise<void> {
  const error = await call.then(
    () => assert.fail(`it should have been refused with ${code}`),
    (reason: unknown) => reason,
  );
  assert.ok(isPerdureError(error), `it should be a PerdureError ${code}, not ${String(error)}`);
  assert.equal(error.code, code);
  assert.ok(error.message.includes(mentions), `"${error.message}" should name ${mentions}`);
}

/** The list under the key `list`. Callers change it. */
export function listIn(value: unknown): unknown[] {
  const list = (value as { list: unknown } | null | undefined)?.list;
  assert.ok(Array.isArray(list));
  return list;
}

/** Values that are not strings, to pass as an id. */
export const NOT_STRINGS: readonly unknown[] = [1, null, true, {}, ['thread'], Symbol('thread')];

/** Strings that are not valid ids. */
export const BLANK: readonly string[] = ['', ' ', '\n\t'];

/** States that JSON would change or lose, with the path of the offending value. */
export function notJson(): { state: JsonObject; path: string }[] {
  const cycle: Record<string, unknown> = {};
  cycle['self'] = { again: cycle };
  class Thing {
    readonly a = 1;
  }
  // A key that no error message contains by chance.
  const values: [unknown, string][] = [
    [{ culprit: undefined }, 'culprit'],
    [{ culprit: [1, () => 1] }, 'culprit[1]'],
    [{ culprit: { b: 1n } }, 'culprit.b'],
    [{ culprit: Number.NaN }, 'culprit'],
    [{ culprit: Number.POSITIVE_INFINITY }, 'culprit'],
    [{ culprit: new Date(0) }, 'culprit'],
    [{ culprit: new Map() }, 'culprit'],
    [{ culprit: new Thing() }, 'culprit'],
    [{ culprit: Symbol('a') }, 'culprit'],
    [{ 'a b': { c: undefined } }, '["a b"].c'],
    [cycle, 'self.again'],
  ];
  return values.map(([state, path]) => ({ state: state as JsonObject, path }));
}
