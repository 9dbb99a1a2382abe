/** Heartbeats of activities. */
import { Context } from '@temporalio/activity';
import type { Payload } from '@temporalio/common';
import { activityContext } from '../temporal/payloads.ts';
import { encodeToPayloadsWithContext } from '../temporal/sdk-internals.ts';

/** Runs with heartbeats, so that the loss of the worker is noticed soon. */
export async function beating<T>(run: (context: Context) => Promise<T>): Promise<T> {
  const context = Context.current();
  const beats = setInterval(() => context.heartbeat(), (context.info.heartbeatTimeoutMs ?? 10_000) / 4);
  try {
    return await run(context);
  } finally {
    clearInterval(beats);
  }
}

/** Encodes details as the SDK does, for {@link recordHeartbeat}. */
export async function encodeDetails({ client, info }: Context, details: unknown): Promise<Payload[]> {
  const { loadedDataConverter, namespace } = client.options;
  const context = activityContext(namespace, info.workflowExecution?.workflowId ?? '', info.activityId);
  return (await encodeToPayloadsWithContext(loadedDataConverter, context, [details])) ?? [];
}

/** The server's answer to a heartbeat. */
export interface HeartbeatAnswer {
  cancelRequested?: boolean | null;
  activityPaused?: boolean | null;
}

/** Records a heartbeat now. The SDK delays its own. @throws Temporal's `ServiceError` */
export function recordHeartbeat({ client, info }: Context, payloads: Payload[]): Promise<HeartbeatAnswer> {
  return client.workflowService.recordActivityTaskHeartbeat({
    namespace: client.options.namespace,
    taskToken: info.taskToken,
    details: { payloads },
  });
}
