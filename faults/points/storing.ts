import { DirectoryValues, Sessions } from 'perdure';
import { STORED_TAIL } from '../large.ts';
import { type FaultPoint, kill } from './point.ts';

const BEFORE = 'storing';
const AFTER = 'stored';

/** SIGKILL while a large result is stored, and a store that fails. */
export const storing: FaultPoint = {
  name: 'storing',
  about:
    'A large result goes to the store of values. The worker is killed (SIGKILL) before it is stored, the next one when it is stored and not recorded, and the store of the third fails twice before it works.',
  anyService: true,
  steps: ['returned'],
  // A mutation that cannot be verified waits for a person, who says what it returned.
  kinds: () => ['read', 'idempotent', 'mutate'],
  oneTurn: true,
  inject: async (stage) => {
    const folder = stage.recordFile.replace(/\.jsonl$/, '-values');
    const env = { LAB_VALUES: folder };
    const first = await stage.startWorker({ breakAt: [BEFORE], env });
    await stage.begin({ mode: 'stored' });
    for (const _ of stage.actors) await first.reached(BEFORE);
    const at = Date.now();
    const killed = await kill(first, 'all');
    const second = await stage.startWorker({ breakAt: [AFTER], env });
    for (const _ of stage.actors) await second.reached(AFTER);
    const also = await kill(second, 'all');
    await stage.startWorker({ env: { ...env, LAB_VALUES_FAIL: '2' } });
    stage.strike(`${killed} before, ${also} after a value was stored`, at);
    return async () => {
      const values = new DirectoryValues(folder);
      const sessions = new Sessions(stage.harness.client, { values });
      let stored = 0;
      for await (const _ of values.list()) stored += 1;
      // A service that ignores keys gives a repeated idempotent call another receipt.
      const repeats = stage.story.keys === 'ignored' && stage.story.kinds.includes('idempotent') ? 1 : 0;
      if (stored > stage.actors.length + repeats)
        throw new Error(`${stored} values are stored for ${stage.actors.length} sessions`);
      for (const { session } of stage.actors) {
        const value = (await session.calls()).items[0]?.result?.value;
        if (value === undefined) throw new Error(`${session.id} has lost a result`);
        const { bytes } = await sessions.get(session.id).value(value);
        if (!Buffer.from(bytes).includes('x'.repeat(STORED_TAIL)))
          throw new Error(`${session.id} has another result than its tool gave`);
      }
    };
  },
};
