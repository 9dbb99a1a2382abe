// The session as in the integration's guide: the AI SDK's own loop inside the workflow.
import { temporalProvider } from '@temporalio/ai-sdk/workflow';
import { proxyActivities } from '@temporalio/workflow';
import { generateText, isStepCount, tool } from 'ai';
import { z } from 'zod';

// As in the floor.
const { look } = proxyActivities({
  startToCloseTimeout: '1m',
  heartbeatTimeout: '10s',
  retry: { initialInterval: '1s', maximumAttempts: 3 },
});

export async function session(id, turns) {
  const { steps } = await generateText({
    model: temporalProvider.languageModel('instant'),
    instructions: 'You are measured.',
    prompt: id,
    tools: {
      read: tool({
        description: 'Looks',
        inputSchema: z.object({ ref: z.string() }),
        execute: ({ ref }) => look(ref),
      }),
    },
    stopWhen: isStepCount(turns + 2),
  });
  return steps.length;
}
