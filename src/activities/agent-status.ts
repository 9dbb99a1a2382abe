/** The built-in tools with which a model checks on its background agents and stops them. */
import { Context } from '@temporalio/activity';
import * as z from 'zod';
import { agentStop, type DefinedTool, defineTool } from '../agent/index.ts';
import { readBackground } from '../history/index.ts';

/** How many characters of an agent's last text are shown: when the model asks about one agent, and about all. */
const TEXT = { one: 4_000, each: 400 } as const;

const inputSchema = z.object({
  session: z.string().optional().describe('As in the result of the call that started it. Without it: all'),
});

/** The tools for an agent that has background agents. */
export function backgroundTools(): Readonly<Record<string, DefinedTool>> {
  const status = defineTool({
    description:
      'Tells how far the agents are that work for you in the background. Do not wait for an agent by asking again and again: end your turn, and a message tells you when it has ended.',
    inputSchema,
    effect: 'read',
    execute: async ({ session }, { sessionId }) => {
      const textLength = session === undefined ? TEXT.each : TEXT.one;
      const agents = await readBackground(Context.current().client, sessionId, { only: session, textLength });
      if (session !== undefined && agents.length === 0)
        return `${session} is not one of your agents, or its end was reported long ago. Ask without a session for all.`;
      return { agents };
    },
  });
  return { agent_status: status as DefinedTool, agent_stop: agentStop() as DefinedTool };
}
