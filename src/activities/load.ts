/** The `load` activity: a checkpoint out of a history, in parts that the history of the new session can hold. */
import { Context } from '@temporalio/activity';
import { LRUCache } from 'lru-cache';
import type { LoadInput, LoadResult } from '../contract/activities.ts';
import { isPerdureError } from '../contract/errors.ts';
import { canonicalJson, type JsonObject } from '../contract/json.ts';
import type { Loaded } from '../contract/loaded.ts';
import type { SessionState } from '../contract/state.ts';
import { foldHistory, readEvents, whatHappened } from '../history/index.ts';

/** Characters of one part: at most three bytes each, under Temporal's limit for a payload. */
const PART = 500_000;

/** What was folded for one part serves the others. */
const texts = new LRUCache<string, string>({
  maxSize: 64_000_000,
  sizeCalculation: ({ length }) => length + 1,
});

/** Reads a part of a checkpoint. A history that is gone or does not fold is said in the result. */
export async function runLoad(input: LoadInput): Promise<LoadResult> {
  const context = Context.current();
  const signs = setInterval(() => context.heartbeat(), 2_000);
  try {
    const key = `${input.kind}:${input.runId}:${input.eventId}`;
    const text = texts.get(key) ?? (await read(context, input));
    if (text === undefined) {
      return {
        kind: 'unavailable',
        message: `session ${input.sessionId} has no checkpoint ${input.runId}:${input.eventId}`,
      };
    }
    texts.set(key, text);
    const from = input.part * PART;
    return {
      kind: 'part',
      parts: Math.max(1, Math.ceil(text.length / PART)),
      text: text.slice(from, from + PART),
    };
  } catch (error) {
    // A server that cannot be reached is asked again by Temporal; a history that does not fold stays so.
    if (!isPerdureError(error, 'CHECKPOINT_CORRUPTION')) throw error;
    return { kind: 'unavailable', message: error.message };
  } finally {
    clearInterval(signs);
  }
}

async function read(context: Context, input: LoadInput): Promise<string | undefined> {
  const { client } = context;
  const execution = { workflowId: input.sessionId, runId: input.runId };
  let past: string | undefined;
  const { state: last } = await foldHistory(
    readEvents(client, execution),
    client.options.loadedDataConverter,
    {
      runId: input.runId,
      onTask: ({ eventId, state }) => {
        if (eventId === input.eventId) past = canonicalJson(state as unknown as JsonObject);
      },
    },
  );
  if (past === undefined || last === null) return undefined;
  const state = JSON.parse(past) as SessionState;
  const loaded: Loaded = { state, after: input.kind === 'rewind' ? whatHappened(state, last) : null };
  return canonicalJson(loaded as unknown as JsonObject);
}
