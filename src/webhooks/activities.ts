/** The activities that start the delivery of notifications, and that deliver one notification. */
import { Context } from '@temporalio/activity';
import { ApplicationFailure, WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import { messageOf } from '../contract/errors.ts';
import { WORKFLOW } from '../contract/names.ts';
import type { DeliverInput, NotifyInput, WebhookInput } from '../contract/notifications.ts';
import { webhookWorkflowId } from '../contract/workflow-ids.ts';
import { eventOf, webhookId } from './body.ts';
import { type Webhook, wants } from './options.ts';
import { send } from './send.ts';

export interface WebhookRunner {
  webhooks: Readonly<Record<string, Webhook>>;
  /** The base address of links. */
  consoleUrl: string | undefined;
}

/** The longest wait that a receiver can ask for, in milliseconds. */
const LONGEST_WAIT_MS = 3_600_000;
const GONE = 410;

/**
 * The `notify` activity: starts the workflow that delivers, which goes on by itself. A second attempt finds it started.
 *
 * @throws ApplicationFailure `NoWebhook` when this worker has no webhook for any of them: another worker may have one
 */
export async function runNotify({ webhooks }: WebhookRunner, input: NotifyInput): Promise<void> {
  const { client, info } = Context.current();
  const { workflowId: sessionId = '', runId = '' } = info.workflowExecution ?? {};
  const names = Object.entries(webhooks)
    .filter(([, webhook]) => input.notifications.some(({ event }) => wants(webhook, input.agent, event)))
    .map(([name]) => name);
  if (names.length === 0) {
    const message = `this worker has no webhook for ${input.notifications.map(({ event }) => event).join(', ')} of ${input.agent}`;
    throw ApplicationFailure.retryable(message, 'NoWebhook');
  }
  const args: [WebhookInput] = [{ ...input, sessionId, runId, webhooks: names }];
  try {
    await client.workflow.start(WORKFLOW.webhook, {
      workflowId: webhookWorkflowId(runId, info.activityId),
      taskQueue: info.taskQueue,
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      args,
      staticSummary: `notifications of ${sessionId}`.slice(0, 130),
    });
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

/** The `deliver` activity: sends one request. Temporal retries a failed one, unless the receiver answers 410. */
export async function runDeliver(
  { webhooks, consoleUrl }: WebhookRunner,
  input: DeliverInput,
): Promise<void> {
  const context = Context.current();
  const { attempt, namespace } = context.info;
  const { webhook: name, agent, notification } = input;
  const webhook = webhooks[name];
  if (webhook === undefined)
    throw ApplicationFailure.retryable(`this worker has no webhook ${name}`, 'NoWebhook');
  if (!wants(webhook, agent, notification.event)) return;
  const event = eventOf(input, { args: webhook.args === true, consoleUrl });
  const body = JSON.stringify(webhook.format === undefined ? event : webhook.format(event));
  const response = await send(webhook, {
    id: webhookId(namespace, input),
    body,
    attempt,
    signal: context.cancellationSignal,
  }).catch((error: unknown) => {
    throw ApplicationFailure.retryable(`${name} cannot be reached: ${messageOf(error)}`, 'NotDelivered');
  });
  if (response.ok) return;
  const message = `${name} answered ${response.status}`;
  if (response.status === GONE) throw ApplicationFailure.nonRetryable(message, 'NotDelivered');
  const seconds = Number(response.headers.get('retry-after'));
  throw ApplicationFailure.create({
    message,
    type: 'NotDelivered',
    ...(seconds > 0 ? { nextRetryDelay: Math.min(seconds * 1_000, LONGEST_WAIT_MS) } : {}),
  });
}
