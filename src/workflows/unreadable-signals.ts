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
  const signalWorkflow = activator.signalWorkflow.bind(activator);
  activator.signalWorkflow = (activation) => {
    const converter = activator.payloadConverter;
    try {
      for (const payload of activation.input ?? []) converter.fromPayload(payload);
    } catch {
      signalWorkflow({ ...activation, input: [converter.toPayload(UNREADABLE)] });
      return;
    }
    signalWorkflow(activation);
  };
}
