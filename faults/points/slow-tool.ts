import type { FaultPoint } from './point.ts';

/** The tool gives up on a service that accepts the request later. */
export const slowTool: FaultPoint = {
  name: 'slow-tool',
  about: 'The tool times out, and the service accepts its request after that, within the settle time.',
  steps: ['gap'],
  kinds: () => ['idempotent', 'mutate', 'blind', 'global'],
  oneTurn: true,
  inject: async (stage) => {
    const effects = stage.effects();
    await stage.lane.control.arm({ on: 'refunds', when: 'before-write', do: 'hang', times: effects });
    await stage.startWorker();
    await stage.begin({ agent: 'hasty' });
    await stage.lane.control.held(effects);
    const at = Date.now();
    const said: string[] = [];
    await stage.until(async (_, { task, session }) => {
      const [call] = (await (await stage.ownerOf(session))?.calls())?.items ?? [];
      const reason = call?.dispatches[0]?.reason ?? '';
      if (!reason.includes('timed out')) return false;
      said.push(`${task.session}: ${reason}`);
      return true;
    });
    // An idempotent call is sent again at once.
    const before = stage.rows({ but: 'idempotent' });
    if (before.length > 0) throw new Error(`${before.join(', ')} landed before its tool had timed out`);
    const released = await stage.lane.control.release();
    if (released < effects) throw new Error(`${released} requests were late, of ${effects} effects`);
    stage.strike(`${said.join('; ')}; nothing of these had landed, then ${released} requests went on`, at);
  },
};
