import { type FaultPoint, kill } from './point.ts';

const BEFORE = 'undoing';
const AFTER = 'undone';

/** SIGKILL around the compensation of an effect. */
export const undo: FaultPoint = {
  name: 'undo',
  about:
    'Sessions are cancelled and undo their effects. The worker is killed (SIGKILL) before the compensation, the next one when it has happened and is not recorded.',
  steps: ['between-turns'],
  // The agent has only this tool.
  kinds: () => ['mutate'],
  oneTurn: true,
  inject: async (stage) => {
    const first = await stage.startWorker({ breakAt: [BEFORE] });
    await stage.begin({ agent: 'repentant' });
    await stage.until(({ phase }) => phase === 'idle');
    for (const { session } of stage.actors)
      await session.cancel({ undo: { digest: (await session.undoPlan()).digest }, by: 'lab' });
    for (const _ of stage.actors) await first.reached(BEFORE);
    const at = Date.now();
    const before = await kill(first, 'all');
    const second = await stage.startWorker({ breakAt: [AFTER] });
    for (const _ of stage.actors) await second.reached(AFTER);
    const evidence = `${before} before the compensation, ${await kill(second, 'all')} after it`;
    // Nobody writes to a cancelled session.
    for (const actor of stage.actors) actor.landed = { evidence, at };
    await stage.startWorker();
    return async () => {
      for (const { session, task } of stage.actors) {
        const { calls } = await session.snapshot();
        // If the effect is in an earlier run, the last run has only its compensation.
        const undone = calls.find(({ id }) => id.startsWith('undo_'));
        const effect = calls.find(({ id }) => `undo_${id}` === undone?.id);
        const mails = (await stage.lane.control.emails()).filter(({ args }) =>
          args.subject.startsWith(`${task.tag}#`),
        );
        const keys = mails.map(({ key }) => key);
        const isUndone =
          undone?.status.kind === 'completed' && (calls.length === 1 || effect?.compensatedBy === undone.id);
        if (!isUndone || keys.length !== 1 || keys[0] !== undone.idempotencyKey)
          throw new Error(`${session.id} was undone by ${JSON.stringify(keys)}: ${JSON.stringify(calls)}`);
      }
    };
  },
};
