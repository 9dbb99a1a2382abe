import type { Context } from '@temporalio/activity';
import type { Payload } from '@temporalio/common';
import { activityContext } from '../temporal/payloads.ts';
import { encodeToPayloadsWithContext } from '../temporal/sdk-internals.ts';

/** Encodes heartbeat details as the SDK does, for a heartbeat that is sent at once. */
export async function encodeDetails({ client, info }: Context, details: unknown): Promise<Payload[]> {
  const { loadedDataConverter, namespace } = client.options;
  const context = activityContext(namespace, info.workflowExecution?.workflowId ?? '', info.activityId);
  return (await encodeToPayloadsWithContext(loadedDataConverter, context, [details])) ?? [];
}
