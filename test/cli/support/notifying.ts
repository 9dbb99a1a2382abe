/** An agent with webhooks, one of which has a shape of its own. Their addresses are those of the environment. */
import { type DefinedAgent, defineAgent, type Webhook } from 'perdure';

export const support: DefinedAgent = defineAgent({
  name: 'support',
  model: 'env:scripted',
  instructions: 'Help.',
});

const { WEBHOOK_URL: url = '', WEBHOOK_SECRET: secret = '' } = process.env;

export const webhooks: Readonly<Record<string, Webhook>> = {
  desk: { url, secret },
  chat: { url, secret: null, format: ({ type, data: { text } }) => ({ type, data: { text } }) },
};
