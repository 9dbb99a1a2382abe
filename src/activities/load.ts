/** The `load` activity: reads a checkpoint from a history, in parts that the new session's history can hold. */
import type { Context } from '@temporalio/activity';
import type { Client } from '@temporalio/client';
import { LRUCache } from 'lru-cache';
import type { LoadEffectsInput, LoadInput, LoadResult } from '../contract/activities.ts';
import type { ToolCall } from '../contract/calls.ts';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import { canonicalJson, type JsonObject, jsonSize } from '../contract/json.ts';
import { effectsDigest } from '../contract/keys.ts';
import type { ArchivedOrigin, Loaded } from '../contract/loaded.ts';
import type { SessionState } from '../contract/state.ts';
import type { ValueStore } from '../contract/values.ts';
import { type FoldedTask, foldHistory, leftState, stepsSince, whatHappened } from '../history/index.ts';
import { loadParts, readPages } from '../temporal/index.ts';
import { copyPieces, earlierEffects, wholeState } from '../temporal/past.ts';
import { Values } from '../values/index.ts';
import { beating } from './heartbeats.ts';
import { attempted } from './last-failure.ts';

/** Characters of one part: at most three bytes each, under Temporal's limit for a payload. */
const PART = 500_000;

/** A cache: the next parts of a checkpoint, and the next portions of effects, come from the same text. */
const texts = new LRUCache<string, string>({
  maxSize: 64_000_000,
  sizeCalculation: ({ length }) => length + 1,
});

/** The largest portion of effects that a session gets at once to undo: their number, and their bytes of JSON. */
const EFFECTS = { count: 50, bytes: 400_000 } as const;

/** Reads a part of a checkpoint, or effects of earlier runs. The result says if these are missing or cannot be read. */
export function runLoad(
  values: ValueStore | undefined,
  input: LoadInput | LoadEffectsInput,
): Promise<LoadResult> {
  return beating((context) => attempted(context, () => load(context, values, input)));
}

/** The last effects before the index `end`. */
async function effects(client: Client, { sessionId, past, end }: LoadEffectsInput): Promise<LoadResult> {
  const key = JSON.stringify([client.options.namespace, sessionId, past]);
  const text = texts.get(key) ?? JSON.stringify(await earlierEffects(client, sessionId, past));
  texts.set(key, text);
  const all = JSON.parse(text) as ToolCall[];
  const last = Math.min(end ?? all.length, all.length);
  let from = last;
  for (let bytes = 0; from > 0 && last - from < EFFECTS.count; from--) {
    bytes += jsonSize(all[from - 1]);
    if (bytes > EFFECTS.bytes && from < last) break;
  }
  return { kind: 'effects', calls: all.slice(from, last), from, digest: effectsDigest(all) };
}

async function load(
  context: Context,
  values: ValueStore | undefined,
  input: LoadInput | LoadEffectsInput,
): Promise<LoadResult> {
  try {
    if (input.kind === 'undo') return await effects(context.client, input);
    const { kind, sessionId, runId, eventId, leaves, archived, undo = false } = input;
    const { namespace } = context.client.options;
    // The loaded state names copies of pieces that belong to the loading session.
    const owner = context.info.workflowExecution?.workflowId ?? '';
    const of = [namespace, owner, sessionId, kind, runId, eventId, leaves ?? '', archived?.key ?? '', undo];
    const key = JSON.stringify(of);
    const text = texts.get(key) ?? (await read(context, values, input));
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
    // Temporal repeats the attempt when the server cannot be reached. A broken checkpoint stays broken.
    const lasting =
      isPerdureError(error, 'CHECKPOINT_CORRUPTION') || isPerdureError(error, 'INVALID_ARGUMENT');
    if (!lasting) throw error;
    return { kind: 'unavailable', message: error.message };
  }
}

async function read(
  { client, info }: Context,
  values: ValueStore | undefined,
  input: LoadInput,
): Promise<string | undefined> {
  const { kind, sessionId, runId, eventId, archived } = input;
  let branch: SessionState | null = null;
  let last: SessionState | null = null;
  let past: string | undefined;
  if (archived === undefined) {
    branch = await lastState(client, { sessionId, runId }, (task) => {
      if (task.eventId === eventId) past = canonicalJson(task.state as unknown as JsonObject);
    });
  } else {
    const origin = JSON.parse(await loadParts(client, archived)) as ArchivedOrigin;
    past = canonicalJson(origin.past as unknown as JsonObject);
    last = origin.last;
  }
  if (past === undefined) return undefined;
  const state = JSON.parse(past) as SessionState;
  if (state.loading !== null) throw notBegun(state);
  let after: Loaded['after'] = null;
  if (kind === 'rewind') {
    last ??= input.leaves === undefined || input.leaves === runId ? branch : await leftState(client, input);
    // Without the last state, effects after the checkpoint would happen again.
    if (last === null) return undefined;
    const whole = await wholeState(client, last);
    const left = branch === last ? whole : branch && (await wholeState(client, branch));
    const then = await wholeState(client, state);
    after = whatHappened(then, whole, left);
    if (input.undo === true) after.undo = { steps: stepsSince(then, whole, left), manifest: whole.manifest };
  }
  if (kind === 'fork' && values !== undefined)
    await new Values(values, client).shareAll(sessionId, info.workflowExecution?.workflowId ?? '');
  if (state.past !== undefined) {
    // The loading session gets copies, because the pieces of the other session may be removed.
    const owner = { sessionId: info.workflowExecution?.workflowId ?? '', taskQueue: info.taskQueue };
    state.past.newest = await copyPieces(client, owner, sessionId, state.past);
  }
  return canonicalJson({ state, after } satisfies Loaded as unknown as JsonObject);
}

async function lastState(
  client: Client,
  { sessionId, runId }: { sessionId: string; runId: string },
  onTask: (task: FoldedTask) => void = () => undefined,
): Promise<SessionState | null> {
  const pages = readPages(client, { workflowId: sessionId, runId });
  return (await foldHistory(pages, client.options, { runId, onTask })).state;
}

/** The error for a checkpoint of a fork or rewind that had not loaded its past yet: it holds no transcript. */
function notBegun({ sessionId, origin }: SessionState): PerdureError {
  const from =
    origin === null
      ? ''
      : `, or the one that it continues from, ${origin.runId}:${origin.eventId} of ${origin.sessionId}`;
  return new PerdureError(
    'INVALID_ARGUMENT',
    `session ${sessionId} had not started at this checkpoint. Choose a later one${from}`,
  );
}
