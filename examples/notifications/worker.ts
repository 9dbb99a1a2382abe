import { createWorker } from 'perdure';
import { clerk } from '../quickstart/agents.ts';

const worker = await createWorker({
  agents: [clerk],
  webhooks: {
    // node -p "'whsec_' + require('crypto').randomBytes(32).toString('base64')"
    desk: { url: 'https://desk.example.com/perdure', secret: process.env['DESK_SECRET'] ?? '' },
    slack: {
      url: process.env['SLACK_WEBHOOK_URL'] ?? '',
      secret: null,
      events: ['approval', 'unknown'],
      format: ({ data: { text, url } }) => ({ text: url === undefined ? text : `${text} <${url}|Open it>` }),
    },
  },
  consoleUrl: 'https://agents.example.com',
});
await worker.run();
