/** A `put` on a session's thread: an edit of the session at rest, made out of the difference to its latest state. */
import type { Checkpoint, PutOptions } from '../contract/checkpoint.ts';
import type { EditInput } from '../contract/edit.ts';
import { PerdureError } from '../contract/errors.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../contract/json.ts';
import type { SessionState } from '../contract/state.ts';
import { diff } from './diff.ts';

/** What a person may change; the rest of a session's state follows from its history. */
const EDITABLE = /^\/(transcript|plan|scratchpadRoot)(\/|$)/;
/** What follows from the transcript: it may be handed back as it was read. */
const DERIVED = /^\/(position|promptBytes|measured)(\/|$)/;

/**
 * The edit that makes a session's latest state into another. Who and why come from the metadata's `by` and
 * `reason`.
 *
 * @throws PerdureError `INVALID_ARGUMENT` naming a field that cannot be edited or is of another kind, or for a parent that is not the
 * latest checkpoint
 */
export function editFor(latest: Checkpoint, state: JsonObject, options: PutOptions): EditInput {
  const { parentId = null, metadata = {} } = options;
  if (parentId !== null && parentId !== latest.id) {
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `parentId: ${parentId} is not the latest checkpoint of session ${latest.thread_id}, which is ${latest.id}. To go on from the past, fork or rewind`,
      { details: { field: 'parentId' } },
    );
  }
  for (const { path } of diff(latest, { state })) {
    if (EDITABLE.test(path) || DERIVED.test(path)) continue;
    throw new PerdureError(
      'INVALID_ARGUMENT',
      `state: ${path} of a session cannot be put: what can be edited is transcript, plan and scratchpadRoot`,
      { details: { field: 'state', path } },
    );
  }
  const before = latest.state as unknown as SessionState;
  assertKinds(before, state);
  const after = state as unknown as SessionState;
  const same = (a: unknown, b: unknown): boolean =>
    canonicalJson(a as JsonValue) === canonicalJson(b as JsonValue);
  const from = after.transcript.findIndex((message, i) => !same(message, before.transcript[i] ?? null));
  const start = from < 0 ? after.transcript.length : from;
  const changed = from >= 0 || after.transcript.length !== before.transcript.length;
  return {
    digest: before.position.digest,
    by: text(metadata['by']) ?? 'unknown',
    reason: text(metadata['reason']) ?? '',
    ...(changed ? { transcript: { from: start, messages: after.transcript.slice(start) } } : {}),
    ...(same(before.plan, after.plan) ? {} : { plan: after.plan }),
    ...(after.scratchpadRoot === before.scratchpadRoot || after.scratchpadRoot === null
      ? {}
      : { scratchpadRoot: after.scratchpadRoot }),
  };
}

/** What is in the lists is checked by the session; a root that it has is never taken away. */
function assertKinds(before: SessionState, { transcript, plan, scratchpadRoot = null }: JsonObject): void {
  const problem = !Array.isArray(transcript)
    ? { path: '/transcript', message: 'write the list of messages' }
    : !Array.isArray(plan)
      ? { path: '/plan', message: 'write the list of steps' }
      : typeof scratchpadRoot !== 'string' && scratchpadRoot !== before.scratchpadRoot
        ? { path: '/scratchpadRoot', message: 'write a directory: it can be changed, and not be taken away' }
        : null;
  if (problem === null) return;
  throw new PerdureError('INVALID_ARGUMENT', `state: ${problem.path}: ${problem.message}`, {
    details: { field: 'state', path: problem.path },
  });
}

function text(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
