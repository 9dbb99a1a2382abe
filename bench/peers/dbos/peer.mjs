// DBOS: a registered workflow whose two steps a turn are recorded in PostgreSQL; the conversation stays in memory.
import { DBOS } from '@dbos-inc/dbos-sdk';
import { serve, turnsOf } from '../serve.js';

await serve(async (work, { postgres }) => {
  const session = DBOS.registerWorkflow(
    async (id) => {
      const messages = [{ role: 'user', content: id }];
      for (let turn = 1; ; turn++) {
        const reply = await DBOS.runStep(async () => work.model(id, turn), { name: 'model' });
        messages.push({ role: 'assistant', content: reply.text });
        if (reply.ref === undefined) return messages.length;
        const result = await DBOS.runStep(() => work.tool(reply.ref), { name: 'tool' });
        messages.push({ role: 'tool', content: result });
      }
    },
    { name: 'session' },
  );
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: postgres,
    applicationVersion: '1',
    logLevel: 'error',
    runAdminServer: false,
  });
  await DBOS.launch();
  return {
    run: async (id) => {
      const handle = await DBOS.startWorkflow(session, { workflowID: id })(id);
      if ((await handle.getResult()) !== 2 + 2 * turnsOf(id)) throw new Error('messages are missing');
    },
    // `launch` resumes the open workflows of this executor.
    resume: (id) => DBOS.retrieveWorkflow(id).getResult(),
  };
});
