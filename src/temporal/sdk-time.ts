/** A part of `sdk-internals.ts`, which loads all of protobuf. A command line and an agent need only this part. */

/**
 * The SDK's conversion of protobuf times and of durations such as `2s`.
 * - Why: the SDK takes durations in this form from users, and does not export how it reads them.
 * - Test: `test/agent/definitions.test.ts`; every test that folds a history.
 * - When the SDK moves it: the build fails at this line.
 */
export { msToNumber, tsToMs } from '@temporalio/common/lib/time.js';
