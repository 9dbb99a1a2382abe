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

/**
 * Runs what comes before a tool, with heartbeats that keep the details on record. They are requests of our own, one
 * after the other, and the last one has ended before the tool begins: what its heartbeats say comes later.
 */
export async function beatingBefore<T>(context: Context, run: () => Promise<T>): Promise<T> {
  const { heartbeatTimeoutMs = 10_000 } = context.info;
  const details: unknown = context.info.heartbeatDetails;
  let last: Promise<unknown> = Promise.resolve();
  const beats = setInterval(() => {
    last = last.then(() => recordDetails(context, details)).catch(() => {});
  }, heartbeatTimeoutMs / 4);
  try {
    return await run();
  } finally {
    clearInterval(beats);
    await last;
  }
}

/** Records details now, or a heartbeat without any. Waits for at most a heartbeat time-out. */
export async function recordDetails(context: Context, details: unknown): Promise<HeartbeatAnswer> {
  const payloads = details === undefined ? [] : await encodeDetails(context, details);
  const { heartbeatTimeoutMs = 10_000 } = context.info;
  return context.client.withDeadline(Date.now() + heartbeatTimeoutMs, () =>
    recordHeartbeat(context, payloads),
  );
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
