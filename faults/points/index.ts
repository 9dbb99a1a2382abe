import { archiveFull } from './archive-full.ts';
import { certainFailure } from './certain-failure.ts';
import { clockStep } from './clock-step.ts';
import { compacting } from './compacting.ts';
import { databaseFull } from './database-full.ts';
import { databaseKill } from './database-kill.ts';
import { deploy } from './deploy.ts';
import { deployCode } from './deploy-code.ts';
import { keyLost } from './key-lost.ts';
import { largeValues } from './large-values.ts';
import { longReads } from './long-reads.ts';
import { mcpChange, mcpFreeze, mcpHttpKill, mcpKill, mcpLies } from './mcp.ts';
import { modelCut } from './model-cut.ts';
import { modelWire } from './model-wire.ts';
import { newRun } from './new-run.ts';
import { oneSlot } from './one-slot.ts';
import type { FaultPoint } from './point.ts';
import { pool, poolTree } from './pool.ts';
import { rateGrant } from './rate-grant.ts';
import { replyLost } from './reply-lost.ts';
import { requestLate } from './request-late.ts';
import { requestLost } from './request-lost.ts';
import { serverKill } from './server-kill.ts';
import { serverWire } from './server-wire.ts';
import { signals } from './signals.ts';
import { slowTool } from './slow-tool.ts';
import { staleResolve } from './stale-resolve.ts';
import { storeFull } from './store-full.ts';
import { storing } from './storing.ts';
import { successor } from './successor.ts';
import { taskDeaths } from './task-deaths.ts';
import { toolThrows } from './tool-throws.ts';
import { twoWorkers } from './two-workers.ts';
import { undo } from './undo.ts';
import { workerFreeze } from './worker-freeze.ts';
import { workerKill } from './worker-kill.ts';
import { workersLost } from './workers-lost.ts';

/** All faults, in the order of the table. */
export const POINTS: readonly FaultPoint[] = [
  workerKill,
  successor,
  workerFreeze,
  twoWorkers,
  longReads,
  workersLost,
  taskDeaths,
  newRun,
  pool,
  poolTree,
  undo,
  compacting,
  oneSlot,
  certainFailure,
  serverKill,
  databaseKill,
  databaseFull,
  storeFull,
  archiveFull,
  serverWire,
  replyLost,
  requestLost,
  requestLate,
  slowTool,
  toolThrows,
  largeValues,
  storing,
  keyLost,
  mcpKill,
  mcpFreeze,
  mcpLies,
  mcpChange,
  modelCut,
  modelWire,
  rateGrant,
  deploy,
  deployCode,
  clockStep,
  signals,
  staleResolve,
  mcpHttpKill,
];
