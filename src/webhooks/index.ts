export { runDeliver, runNotify, type WebhookRunner } from './activities.ts';
export type { WebhookEvent } from './body.ts';
export { checkWebhooks, policyFor, type Webhook } from './options.ts';
export { testWebhook, type WebhookTest } from './test-webhook.ts';
