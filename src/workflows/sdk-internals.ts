/**
 * Everything in the sandbox that depends on internals of Temporal's SDK. Each entry says why we need it, which test
 * covers it, and what happens when the SDK changes. See `temporal/sdk-internals.ts` for the code outside the sandbox.
 */
import { getActivator } from '@temporalio/workflow/lib/global-attributes.js';
import { UNREADABLE } from '../contract/inputs.ts';

/**
 * Lets a signal whose payload cannot be decoded arrive as {@link UNREADABLE}. Anybody may send one, and the SDK
 * would fail the workflow task over it, again and again, for as long as the signal is in the history.
 *
 * - Why: it replaces a method of the SDK instead of using an interceptor, which a user's own bundle could lack. No
 *   session may run without this.
 * - Test: `test/session/input-hostile.test.ts`.
 * - When the SDK renames a method: TypeScript refuses it. When it decodes elsewhere: that test fails.
 */
export function acceptUnreadableSignals(): void {
  const activator = getActivator();
  const strict = activator.payloadConverter;
  const decode = strict.fromPayload.bind(strict) as (...args: unknown[]) => unknown;
  const tolerant = Object.create(strict, {
    fromPayload: {
      value: (...args: unknown[]): unknown => {
        try {
          return decode(...args);
        } catch {
          return UNREADABLE;
        }
      },
    },
  }) as typeof strict;
  const signalWorkflow = activator.signalWorkflow.bind(activator);
  activator.signalWorkflow = (activation) => {
    activator.payloadConverter = tolerant;
    try {
      signalWorkflow(activation);
    } finally {
      activator.payloadConverter = strict;
    }
  };
}

/** The id that the SDK gives a query without a workflow task. */
const DIRECT_QUERY = 'legacy_query';

/**
 * Calls `came` for each query that comes without a workflow task, before it is answered. When that throws, the query
 * fails and the workflow leaves the cache.
 *
 * - Why: such a query can carry a history that ends in another worker's task, see `QueriedTask`. Interceptors do not
 *   see the queries of Temporal's own UI.
 * - Test: `test/session/queried-task.test.ts`.
 * - When the SDK renames the method: TypeScript refuses it. When it renames the id: that test fails.
 */
export function onDirectQuery(came: () => void): void {
  const activator = getActivator();
  const queryWorkflow = activator.queryWorkflow.bind(activator);
  activator.queryWorkflow = (activation) => {
    if (activation.queryId === DIRECT_QUERY) came();
    queryWorkflow(activation);
  };
}
