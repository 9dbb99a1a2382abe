/** Trees of agents on one worker, and of bare workflows on another. */
import { randomUUID } from 'node:crypto';
import type { LanguageModelV3, LanguageModelV3Prompt } from '@ai-sdk/provider';
import type { Client } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import * as z from 'zod';
import { TASK_TIMEOUT } from '../../src/contract/limits.ts';
import {
  agentTool,
  createWorker,
  type DefinedAgent,
  defineAgent,
  defineTool,
  type Session,
  Sessions,
} from '../../src/index.ts';
import { floorActivities } from '../floor/activities.ts';
import { bundleFloor } from '../floor/bundle.ts';
import { benchAgent } from './agent.ts';
import { answering, instantModel, STOP, usageOf } from './instant-model.ts';
import { jobText, replyText, toolText } from './job.ts';

/** How many children of one parent are open at a time. */
export const AT_ONCE = 4;
const usage = usageOf({ tokens: 500, cached: 0 });

export interface Trees {
  /** Runs a parent with this many children. */
  runOurs: (children: number) => Promise<void>;
  runFloor: (children: number) => Promise<void>;
  /**
   * Starts a session over a chain of sub-agents. The lowest, `depth` levels below it, asks for an approval in each
   * turn.
   */
  startDeep(depth: number, turns: number): Promise<Session>;
  /** When its last approved call ran. */
  ranAt(): number;
  close(): Promise<void>;
}

/** The text of the last message, if a person wrote it. */
function said(prompt: LanguageModelV3Prompt): string | undefined {
  const last = prompt.at(-1);
  const [part] = last?.role === 'user' ? last.content : [];
  return part?.type === 'text' ? part.text : undefined;
}

/** Gives a task to each sub-agent, and ends when they have answered. */
function delegating(tasksOf: (text: string) => string[]): LanguageModelV3 {
  return answering(({ prompt }) => {
    const text = said(prompt);
    if (text === undefined)
      return { content: [{ type: 'text', text: replyText(2) }], finishReason: STOP, usage };
    return {
      content: tasksOf(text).map((task, n) => ({
        type: 'tool-call',
        toolCallId: `provider_${n}`,
        toolName: 'delegate',
        input: JSON.stringify({ task }),
      })),
      finishReason: { unified: 'tool-calls', raw: 'tool_calls' },
      usage,
    };
  });
}

export async function openTrees(client: Client, address: string, journal: string): Promise<Trees> {
  const taskQueue = `trees-${randomUUID()}`;
  const floorQueue = `${taskQueue}-floor`;
  let ran = 0;
  const parent = defineAgent({
    name: 'parent',
    model: delegating((text) =>
      Array.from({ length: Number(text) }, () => jobText({ id: randomUUID(), turns: 1, tool: 'read' })),
    ),
    instructions: 'You are measured.',
    tools: { delegate: agentTool(benchAgent()) },
    subAgents: { open: AT_ONCE },
    runTurns: false,
  });
  let deep: DefinedAgent = defineAgent({
    name: 'level0',
    model: instantModel(),
    instructions: 'You are measured.',
    tools: {
      mutate: defineTool({
        description: 'Changes the world',
        inputSchema: z.object({ ref: z.string() }),
        effect: 'mutate',
        needsApproval: true,
        execute: ({ ref }) => {
          ran = performance.now();
          return toolText(ref);
        },
        verify: () => ({ outcome: 'absent' }),
      }),
    },
  });
  const levels = [deep];
  for (let level = 1; level <= 5; level++) {
    deep = defineAgent({
      name: `level${level}`,
      model: delegating((text) => [text]),
      instructions: 'You are measured.',
      tools: { delegate: agentTool(deep) },
    });
    levels.push(deep);
  }
  const native = await NativeConnection.connect({ address });
  const workers = [
    await createWorker({ agents: [parent, ...levels], address, taskQueue, journal }),
    await Worker.create({
      connection: native,
      taskQueue: floorQueue,
      stickyQueueScheduleToStartTimeout: '1s',
      maxHeartbeatThrottleInterval: 250,
      defaultHeartbeatThrottleInterval: 250,
      workflowBundle: await bundleFloor(),
      activities: floorActivities((id) => ({ id, turns: 1, tool: 'read' })),
    }),
  ];
  const running = workers.map((worker) => worker.run());
  const sessions = new Sessions(client, { taskQueue });
  return {
    runOurs: async (children) => {
      await (await sessions.start('parent', { message: String(children), mode: 'task' })).result();
    },
    runFloor: async (children) => {
      const handle = await client.workflow.start('tree', {
        workflowId: randomUUID(),
        taskQueue: floorQueue,
        args: [{ children, atOnce: AT_ONCE }],
        workflowTaskTimeout: TASK_TIMEOUT,
      });
      await handle.result();
    },
    startDeep: (depth, turns) =>
      sessions.start(`level${depth}`, {
        message: jobText({ id: randomUUID(), turns, tool: 'mutate' }),
        mode: 'task',
      }),
    ranAt: () => ran,
    close: async () => {
      for (const worker of workers) worker.shutdown();
      await Promise.all(running);
      await native.close();
    },
  };
}
