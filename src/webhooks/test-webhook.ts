/** Tests whether a receiver accepts what a worker would send. */
import { randomUUID } from 'node:crypto';
import { messageOf } from '../contract/errors.ts';
import { testEvent } from './body.ts';
import type { Webhook } from './options.ts';
import { send } from './send.ts';

/** How a receiver answered the test. */
export interface WebhookTest {
  ok: boolean;
  /** `null`: there was no answer, and `problem` says why. */
  status: number | null;
  problem?: string;
}

/** Sends one test event. Nothing is sent again. */
export async function testWebhook(webhook: Webhook, consoleUrl: string | undefined): Promise<WebhookTest> {
  const event = testEvent(new Date().toISOString(), consoleUrl);
  try {
    const body = JSON.stringify(webhook.format === undefined ? event : webhook.format(event));
    const { ok, status } = await send(webhook, { id: `msg_test_${randomUUID()}`, body, attempt: 1 });
    return { ok, status };
  } catch (error) {
    return { ok: false, status: null, problem: messageOf(error) };
  }
}
