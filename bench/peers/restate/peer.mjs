// Restate: a workflow keyed by the session, whose two run blocks a turn are journalled by the server.
import * as restate from '@restatedev/restate-sdk';
import { serve, turnsOf } from '../serve.js';

await serve(async (work, { restateIngress, restateAdmin, port }) => {
  const session = restate.workflow({
    name: 'session',
    handlers: {
      run: async (ctx) => {
        const messages = [{ role: 'user', content: ctx.key }];
        for (let turn = 1; ; turn++) {
          const reply = await ctx.run('model', () => work.model(ctx.key, turn));
          messages.push({ role: 'assistant', content: reply.text });
          if (reply.ref === undefined) return messages.length;
          const result = await ctx.run('tool', () => work.tool(reply.ref));
          messages.push({ role: 'tool', content: result });
        }
      },
    },
  });
  // The default logger reports every invocation.
  const logger = ({ level }, ...words) => level === 'error' && console.error(...words);
  await restate.serve({ services: [session], port, logger });
  await request(`${restateAdmin}/deployments`, { uri: `http://127.0.0.1:${port}` }, [409]);
  const ended = async (path) => request(`${restateIngress}/${path}`, undefined, []);
  return {
    run: async (id) => {
      if ((await ended(`session/${id}/run`)) !== 2 + 2 * turnsOf(id)) throw new Error('messages are missing');
    },
    resume: (id) => ended(`restate/workflow/session/${id}/attach`),
  };
});

/** Posts the body, if any. Attaching is a GET without a body. */
async function request(url, body, also) {
  const init =
    body === undefined
      ? { method: url.endsWith('/attach') ? 'GET' : 'POST' }
      : {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        };
  const response = await fetch(url, init);
  const text = await response.text();
  if (!response.ok && !also.includes(response.status)) throw new Error(`${response.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}
