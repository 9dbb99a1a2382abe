/** `perdure webhooks test` against a receiver that checks signatures with its own library. */
import { fileURLToPath } from 'node:url';
import { Webhook as Standard } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { SECRET } from '../support/notifying-agents.ts';
import { startWebhookReceiver } from '../support/webhook-receiver.ts';
import { errorOf, run } from './support/perdure.ts';

const MODULE = fileURLToPath(new URL('support/notifying.ts', import.meta.url));

test('webhooks test: each webhook of the module gets one event, signed and made as a worker does it', async () => {
  const receiver = await startWebhookReceiver();
  const env = { WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: SECRET };
  const all = await run(['webhooks', 'test', '--module', MODULE], { env });
  expect(all).toMatchObject({ code: 0, stdout: 'desk: answered 200\nchat (unsigned): answered 200\n' });
  const signed = receiver.received.find(({ headers }) => headers['webhook-signature'] !== undefined);
  const { body = '', headers = {} } = signed ?? {};
  expect(new Standard(SECRET).verify(body, headers as Record<string, string>)).toMatchObject({
    type: 'session.test',
    data: { session: 'test', agent: 'test' },
  });
  const plain = receiver.received.find((request) => request !== signed);
  expect(plain?.data).toEqual({ text: expect.stringContaining('A test of perdure webhooks') });

  const unknown = await run(['webhooks', 'test', 'disk', '--module', MODULE, '--json'], { env });
  expect(unknown.code).toBe(2);
  expect(errorOf(unknown).message).toContain('webhook: disk is none of desk, chat');
});

test('webhooks test: a receiver that refuses or is not there is status 1, and no secret is printed', async () => {
  const receiver = await startWebhookReceiver();
  receiver.answer = 500;
  const env = { PERDURE_WEBHOOK_SECRET: SECRET };
  const { code, stdout } = await run(
    ['webhooks', 'test', receiver.url, 'http://127.0.0.1:1/hook', '--json'],
    { env },
  );
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toEqual({
    webhooks: [
      { webhook: receiver.url, signed: true, ok: false, status: 500 },
      {
        webhook: 'http://127.0.0.1:1/hook',
        signed: true,
        ok: false,
        status: null,
        problem: expect.stringMatching(/ECONNREFUSED|bad port/),
      },
    ],
  });
  expect(receiver.received).toHaveLength(1);
  const wrong = await run(['webhooks', 'test', receiver.url, '--secret', 'whsec_short']);
  expect(wrong.code).toBe(1);
  expect(wrong.stderr).toContain('secret: write whsec_ and at least 24 bytes in base64');
  expect(`${wrong.stderr}${wrong.stdout}`).not.toContain('whsec_short');
});
