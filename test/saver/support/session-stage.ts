/** A stage for the checkpoints of sessions: an agent that looks things up, and a saver. */
import * as z from 'zod';
import {
  type DefinedAgent,
  defineAgent,
  defineTool,
  type Session,
  TemporalSaver,
} from '../../../src/index.ts';
import { type Reply, type Script, type ScriptedTurn, scriptedTurns } from '../../../src/testing/index.ts';
import { openStage, type RunningWorker, type Stage, untilPhase } from '../../support/stage.ts';

/** What these tests work with. */
export interface SessionStage extends Stage {
  saver: TemporalSaver;
  agent: DefinedAgent;
  worker: RunningWorker;
  /** What the tool was called with, and the scratchpad that it was given. */
  looked: { at: string; scratchpadRoot: string | null }[];
}

/** A reply that looks something up. */
export const LOOK_UP: Reply = { toolCalls: [{ name: 'look', args: { at: 'here' } }] };

/** Opens it for the running test. */
export async function openSessionStage(
  script: Script | readonly ScriptedTurn[],
  options: { needsApproval?: boolean } = {},
): Promise<SessionStage> {
  const stage = await openStage(typeof script === 'function' ? script : scriptedTurns(script));
  const looked: SessionStage['looked'] = [];
  const agent = defineAgent({
    name: 'looker',
    model: stage.provider('scripted'),
    instructions: 'Look.',
    plan: true,
    tools: {
      look: defineTool({
        inputSchema: z.object({ at: z.string() }),
        effect: 'read',
        needsApproval: options.needsApproval === true,
        execute: ({ at }, { scratchpadRoot = null }) => {
          looked.push({ at, scratchpadRoot });
          return { at, seen: true };
        },
      }),
    },
  });
  const worker = await stage.startWorker([agent]);
  const saver = new TemporalSaver(stage.client, { taskQueue: stage.taskQueue });
  return { ...stage, saver, agent, worker, looked };
}

/** Starts a session, and waits for the end of its first turn. */
export async function idle(stage: SessionStage, message = 'Look there.'): Promise<Session> {
  const session = await stage.sessions.start('looker', { id: stage.id(), message });
  await untilPhase(session, 'idle');
  return session;
}
