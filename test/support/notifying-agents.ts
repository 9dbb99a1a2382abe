/** The agents of the effect tests, with a webhook. */
import type { SessionWorkerOptions } from '../../src/index.ts';

export * from './effect-agents.ts';

export const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=';

export const workerOptions: Partial<SessionWorkerOptions> = {
  webhooks: { desk: { url: process.env['WEBHOOK_URL'] ?? 'http://127.0.0.1:1', secret: SECRET, args: true } },
  consoleUrl: 'https://agents.example.com/',
};
