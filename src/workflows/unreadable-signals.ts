import { getActivator } from '@temporalio/workflow/lib/global-attributes.js';
import { UNREADABLE } from '../contract/inputs.ts';

/**
 * Lets a signal whose payload cannot be decoded arrive as {@link UNREADABLE}. Anybody may send one, and the SDK
 * would fail the workflow task over it, again and again, for as long as the signal is in the history.
 *
 * It replaces a method of the SDK's own, for an interceptor would have to be in the bundle of whoever composes
 * a session: there is no session without this.
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
