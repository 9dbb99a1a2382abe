/** A `put` on a session edits it while no turn runs. The edit is the difference between the put and its parent. */
import type { Client } from '@temporalio/client';
import * as z from 'zod/mini';
import { diff } from '../checkpoints/diff.ts';
import type { SessionCheckpoints } from '../checkpoints/session-checkpoints.ts';
import { Session } from '../client/index.ts';
import type { Checkpoint } from '../contract/checkpoint.ts';
import type { EditInput } from '../contract/edit.ts';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import { canonicalJson, digestJson, type JsonObject, type JsonValue } from '../contract/json.ts';
import { type LazySchema, lazySchema } from '../contract/lazy-schema.ts';
import type { SessionState } from '../contract/state.ts';
import { parseKnown } from '../contract/unknown-name.ts';
import { editBasis } from '../session/edit.ts';
import type { Execution } from '../temporal/executions.ts';
import { type CheckedPut, unknownParent } from '../thread/checks.ts';

/** The fields that a person may change. The rest of a session's state follows from its history. */
const EDITABLE = /^\/(transcript|plan|scratchpadRoot)(\/|$)/;
/** Fields that follow from the transcript. Differences in them are ignored. */
const DERIVED = /^\/(position|promptBytes|measured|summarized|compaction)(\/|$)/;

interface WhoAndWhy {
  by: string;
  reason: string;
}

const metadataSchema: LazySchema<{ metadata: WhoAndWhy }> = lazySchema(() => {
  const text = (limit: number): z.ZodMiniType<string> =>
    z.string().check(z.regex(/\S/, 'is blank'), z.maxLength(limit));
  // The edit's notice holds both in full.
  return z.object({ metadata: z.object({ by: text(200), reason: text(1_700) }) });
});

/**
 * Makes the edit, and returns its checkpoint. A repeated edit of the same parent returns the first one's checkpoint.
 */
export async function putOnSession(
  client: Client,
  checkpoints: SessionCheckpoints,
  session: Execution,
  put: CheckedPut,
): Promise<Checkpoint> {
  const { workflowId } = session;
  const { parentId } = put;
  const who = whoAndWhy(put);
  const [latest] = await checkpoints.list(session, null, 1);
  if (latest === undefined) {
    const message = `Session ${workflowId} has no checkpoint yet: no worker has run it. Try again when one has`;
    throw new PerdureError('SESSION_BUSY', message);
  }
  const given = parentId !== null && parentId !== latest.id;
  const parent = given ? await checkpoints.get(session, parentId) : latest;
  if (parent === null) throw unknownParent(workflowId, parentId ?? '');
  const edit = editFor(parent, put.state, who);
  // The same edit of the same parent is the same update: Temporal executes it once.
  const id = digestJson({ parent: parent.id, edit } as unknown as JsonObject);
  const { checkpointId } = await new Session(client, workflowId)
    .edit(edit, { id })
    .catch((error: unknown) => {
      throw parentId !== null && hasChanged(error) ? stale(workflowId, parentId) : error;
    });
  const made = await checkpoints.get(session, checkpointId);
  if (made !== null) return made;
  throw new PerdureError('CONFLICT', `Session ${workflowId} was rewound while it was edited. Read it again`);
}

/** Who edits and why. @throws PerdureError `INVALID_ARGUMENT` */
function whoAndWhy({ threadId, metadata, id }: CheckedPut): WhoAndWhy {
  if (id !== null) {
    const message =
      `id: ${threadId} is a session and makes its own checkpoint ids: leave it out. ` +
      'The same put with the same parent is stored once';
    throw new PerdureError('INVALID_ARGUMENT', message, { details: { field: 'id' } });
  }
  const parsed = parseKnown(metadataSchema, { metadata });
  if (parsed.ok) return parsed.value.metadata;
  const message = `${parsed.message}. Say who edits the session and why: metadata { by, reason }`;
  throw new PerdureError('INVALID_ARGUMENT', message, { details: { field: parsed.field } });
}

/** Whether the session refused an edit because its basis has changed. */
function hasChanged(error: unknown): boolean {
  return isPerdureError(error, 'SESSION_BUSY') && error.details['field'] === 'basis';
}

function stale(sessionId: string, parentId: string): PerdureError {
  return new PerdureError(
    'INVALID_ARGUMENT',
    `parentId: the transcript, the plan or the scratchpadRoot of session ${sessionId} has changed since ${parentId}. Read the latest checkpoint and put again. To continue from the past, fork or rewind`,
    { details: { field: 'parentId' } },
  );
}

/** The edit that turns a checkpoint's state into another. @throws PerdureError `INVALID_ARGUMENT` naming the field */
function editFor(parent: Checkpoint, state: JsonObject, who: WhoAndWhy): EditInput {
  for (const { path } of diff(parent, { state })) {
    if (EDITABLE.test(path) || DERIVED.test(path)) continue;
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `state: ${path} of a session cannot be edited, only transcript, plan and scratchpadRoot. If you did not change it, the state belongs to another checkpoint than ${parent.id}: pass that one's id as the parent`,
      { details: { field: 'state', path } },
    );
  }
  const before = parent.state as unknown as SessionState;
  assertKinds(before, state);
  const after = state as unknown as SessionState;
  const same = (a: unknown, b: unknown): boolean =>
    canonicalJson(a as JsonValue) === canonicalJson(b as JsonValue);
  const from = after.transcript.findIndex((message, i) => !same(message, before.transcript[i] ?? null));
  const start = from < 0 ? after.transcript.length : from;
  const changed = from >= 0 || after.transcript.length !== before.transcript.length;
  return {
    basis: editBasis(before),
    ...who,
    ...(changed
      ? {
          transcript: { from: (before.past?.messages ?? 0) + start, messages: after.transcript.slice(start) },
        }
      : {}),
    ...(same(before.plan, after.plan) ? {} : { plan: after.plan }),
    ...(after.scratchpadRoot === before.scratchpadRoot || after.scratchpadRoot === null
      ? {}
      : { scratchpadRoot: after.scratchpadRoot }),
  };
}

/** Checks the types of the fields. The session checks the entries. A scratchpad root cannot be removed. */
function assertKinds(before: SessionState, { transcript, plan, scratchpadRoot = null }: JsonObject): void {
  const problem = !Array.isArray(transcript)
    ? { path: '/transcript', message: 'write the list of messages' }
    : !Array.isArray(plan)
      ? { path: '/plan', message: 'write the list of steps' }
      : typeof scratchpadRoot !== 'string' && scratchpadRoot !== before.scratchpadRoot
        ? { path: '/scratchpadRoot', message: 'write a directory: it can be changed, but not removed' }
        : null;
  if (problem === null) return;
  throw new PerdureError('INVALID_ARGUMENT', `state: ${problem.path}: ${problem.message}`, {
    details: { field: 'state', path: problem.path },
  });
}
