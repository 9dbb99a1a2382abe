/** The `load` activity: a checkpoint out of a history, in parts that the history of the new session can hold. */
import { Context } from '@temporalio/activity';
import { LRUCache } from 'lru-cache';
import type { LoadInput, LoadResult } from '../contract/activities.ts';
import { isPerdureError } from '../contract/errors.ts';
import { canonicalJson, type JsonObject } from '../contract/json.ts';
import type { Loaded } from '../contract/loaded.ts';
import type { CarriedEffect } from '../contract/origin.ts';
import type { SessionState } from '../contract/state.ts';
import { foldHistory, readEvents } from '../history/index.ts';

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
  let openThen: string[] = [];
  let doneThen = new Set<string>();
  const { state: last } = await foldHistory(
    readEvents(client, execution),
    client.options.loadedDataConverter,
    {
      runId: input.runId,
      onTask: ({ eventId, state }) => {
        if (eventId !== input.eventId) return;
        past = canonicalJson(state as unknown as JsonObject);
        doneThen = new Set(
          state.calls.filter(({ status }) => status.kind === 'completed').map(({ id }) => id),
        );
        openThen = state.batch.filter((id) => !doneThen.has(id));
      },
    },
  );
  if (past === undefined || last === null) return undefined;
  const loaded = {
    state: JSON.parse(past) as SessionState,
    after: input.kind === 'rewind' ? whatHappened(last, doneThen, openThen) : null,
  };
  return canonicalJson(loaded as unknown as JsonObject);
}

function whatHappened(
  last: SessionState,
  doneThen: ReadonlySet<string>,
  openThen: readonly string[],
): Loaded['after'] {
  const effects: CarriedEffect[] = last.calls
    .filter((call) => call.effect === 'mutate' && call.status.kind === 'completed' && call.replayOf === null)
    .filter(({ id, dispatches }) => !doneThen.has(id) && dispatches.length > 0)
    .map(({ id, name, idempotencyKey, result }) => ({
      callId: id,
      tool: name,
      idempotencyKey,
      output: result?.content ?? null,
    }));
  const ended: NonNullable<Loaded['after']>['ended'] = {};
  for (const id of openThen) {
    const status = last.calls.find((call) => call.id === id)?.status;
    ended[id] = status?.kind === 'skipped' || (status?.kind === 'failed' && status.certain) ? 'absent' : null;
  }
  return { effects: [...last.carried, ...effects], ended, spent: last.budget.spent };
}
