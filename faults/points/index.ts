import { databaseKill } from './database-kill.ts';
import { deploy } from './deploy.ts';
import { modelCut } from './model-cut.ts';
import { modelWire } from './model-wire.ts';
import type { FaultPoint } from './point.ts';
import { replyLost } from './reply-lost.ts';
import { requestLate } from './request-late.ts';
import { requestLost } from './request-lost.ts';
import { serverKill } from './server-kill.ts';
import { serverWire } from './server-wire.ts';
import { signals } from './signals.ts';
import { slowTool } from './slow-tool.ts';
import { toolThrows } from './tool-throws.ts';
import { twoWorkers } from './two-workers.ts';
import { workerFreeze } from './worker-freeze.ts';
import { workerKill } from './worker-kill.ts';

/** All faults, in the order of the table. */
export const POINTS: readonly FaultPoint[] = [
  workerKill,
  workerFreeze,
  twoWorkers,
  serverKill,
  databaseKill,
  serverWire,
  replyLost,
  requestLost,
  requestLate,
  slowTool,
  toolThrows,
  modelCut,
  modelWire,
  deploy,
  signals,
];
