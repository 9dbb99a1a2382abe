/**
 * Everything outside the sandbox that depends on what Temporal's SDK or server does not promise. An entry says why we
 * need it, which test holds it, and what happens when the SDK changes. Nothing else may import the SDK's inner modules.
 * The entries for workers are in `worker/sdk-internals.ts`, those for the sandbox in `workflows/sdk-internals.ts`, and
 * those that must load fast in `sdk-time.ts`.
 */

/**
 * Encoding and decoding with a client's converter and codecs.
 * - Why: a client converts only for its own calls. We read histories, memos and heartbeat details, send heartbeats, and
 *   store values.
 * - Test: `test/history/page-sizes.test.ts` and every test with a codec.
 * - When the SDK moves it: the build fails at this line.
 */
export {
  decode,
  decodeFailure,
  decodeFromPayloadsAtIndex,
  decodeOptionalSinglePayload,
  encode,
  encodeToPayloadsWithContext,
} from '@temporalio/common/lib/internal-non-workflow/index.js';

/**
 * The marker that `patched` records.
 * - Why: the fold refuses a history with a patch that it does not know.
 * - Test: `test/history/newer-version.test.ts`.
 * - When sdk-core renames it: the fold refuses every history with a patch and names the marker.
 */
export const PATCH_MARKER = 'core_patch';

/**
 * Types of the failure of an update that the server delivered and the worker did not answer.
 * - Why: only the type tells whether the update was processed.
 * - Test: `test/client/dropped-update.test.ts`.
 * - When the server renames one: the caller gets Temporal's own error instead of one with a code.
 */
export const UPDATE_FAILURE = {
  unprocessed: 'UnprocessedUpdate',
  overtaken: 'AcceptedUpdateCompletedWorkflow',
} as const;

/**
 * Whether a payload converter did not know a payload's encoding. Only the message of its error tells.
 * - Test: `test/encryption/plain-client.test.ts`.
 * - When the message changes: a client without the codec gets Temporal's own error, and can write plain text.
 */
export function saysUnknownEncoding(message: string): boolean {
  return message.startsWith('Unknown encoding');
}

/**
 * Whether "workflow not found" means that the workflow is closed. Only the server's message tells.
 * - Test: `test/client/sessions.test.ts`.
 * - When the message changes: a closed session is reported as missing.
 */
export function saysClosed(message: string): boolean {
  return /already completed/i.test(message);
}

/**
 * Whether a run has had as many updates as the server allows. Only the server's message tells.
 * - Test: `test/session/history-full.test.ts`.
 * - When the message changes: a full session is reported as one without a worker.
 */
export function saysUpdateLimit(message: string): boolean {
  return /total number of distinct updates/.test(message);
}
