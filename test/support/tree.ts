/** Agents that work for one another: each has a model of its own name. */
import { expect } from 'vitest';
import * as z from 'zod';
import {
  type DefinedAgent,
  type DefinedTool,
  defineAgent,
  defineTool,
  type Session,
} from '../../src/index.ts';
import type { Script } from '../../src/testing/index.ts';
import { polled } from './polled.ts';
import type { Stage } from './stage.ts';

type Tools = NonNullable<Parameters<typeof defineAgent>[0]['tools']>;

/** A script by the agent that asks. */
export function scripted(scripts: Record<string, Script>): Script {
  return (request) => (scripts[request.model] ?? expect.fail(`no script for ${request.model}`))(request);
}

/** A model that calls tools once, and then answers. */
export function once(toolCalls: { name: string; args: object }[], text = 'Done.'): Script {
  return ({ assistantCount }) => (assistantCount === 0 ? { toolCalls } : { text });
}

export function agent(stage: Stage, name: string, tools: Tools = {}, more: object = {}): DefinedAgent {
  return defineAgent({ name, model: stage.provider(name), instructions: 'Work.', tools, ...more });
}

export async function ask(stage: Stage, options: object = {}): Promise<Session> {
  return stage.sessions.start('lead', { id: stage.id(), message: 'Report.', ...options });
}

/** A tool that waits for an approval. */
export const hold: DefinedTool<Record<string, never>, string> = defineTool({
  inputSchema: z.object({}),
  effect: 'read',
  needsApproval: true,
  execute: () => 'held',
});

/** The first sub-agent of a session, once its own session is there: the caller has it on record before. */
export async function childOf({ sessions }: Stage, session: Session): Promise<Session> {
  let child = session;
  await polled(
    async () => {
      const [first] = (await session.snapshot()).children ?? [];
      if (first === undefined) return false;
      child = sessions.get(first.sessionId);
      return child.state().then(Boolean, () => false);
    },
    () => `${session.id} has no sub-agent`,
  );
  return child;
}
