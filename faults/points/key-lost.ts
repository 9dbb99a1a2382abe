import type { Session } from 'perdure';
import { SIGNAL } from '../../src/contract/names.ts';
import { whyUnanswered } from '../../src/temporal/unanswered.ts';
import { KEYS } from '../keys.ts';
import { PATIENCE_MS } from '../patience.ts';
import type { Stage } from '../stage.ts';
import { open } from './opening.ts';
import { type FaultPoint, kill } from './point.ts';

const [OLD, NEW] = KEYS;
const MISSING = `does not have the encryption key ${OLD}`;

/** Workers that have only the next key, and then both. */
export const keyLost: FaultPoint = {
  name: 'key-lost',
  about:
    'Sessions are encrypted. The worker is killed (SIGKILL), and the next one lacks their key: the sessions say which key is missing, and go on with a worker that has it.',
  anyService: true,
  key: OLD,
  steps: ['landed'],
  soakSteps: ['model-asked', 'returned', 'approval', 'between-turns'],
  inject: async (stage) => {
    const { step } = stage.story;
    const first = await open(stage, { env: { LAB_KEYS: OLD } });
    const at = Date.now();
    const dead = await kill(first, 'all');
    const second = await stage.startWorker({ env: { LAB_KEYS: NEW } });
    await Promise.all(stage.actors.map(({ session }) => missesKey(stage, session)));
    await second.stop();
    stage.strike(`${dead}; every session says that its worker ${MISSING}`, at);
    await stage.startWorker({ env: { LAB_KEYS: KEYS.join() } });
    if (step === 'between-turns') stage.more();
  },
};

/** Gives a session a workflow task, and waits until the server reports that it fails because of the missing key. */
async function missesKey({ harness: { client } }: Stage, { id }: Session): Promise<void> {
  await client.workflow.getHandle(id).signal(SIGNAL.resume, { by: 'lab' });
  const asked = { workflowId: id, what: id, askedMs: Date.now() };
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const { code, message } = await whyUnanswered(client, asked);
    if (code === 'TASK_FAILING' && message.includes(MISSING)) return;
    if (Date.now() > deadline) throw new Error(message);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
