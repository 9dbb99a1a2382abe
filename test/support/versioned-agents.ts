/** Agents of a worker process that has a version, and can be held with a workflow task open. */
import type { SessionWorkerOptions } from '../../src/index.ts';
import { workerOptions as held } from './dying-agents.ts';

export { effects } from './effect-agents.ts';

const { DEPLOYMENT: name = '', BUILD_ID: buildId = '' } = process.env;

export const workerOptions: Partial<SessionWorkerOptions> = {
  ...held,
  deployment: { name, buildId, behavior: 'PINNED' },
};
