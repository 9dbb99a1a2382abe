/** An agent with a small context window: the module that worker processes load. */
import { type DefinedAgent, defineAgent } from '../../src/index.ts';

export const windowed: DefinedAgent = defineAgent({
  name: 'windowed',
  model: { model: 'scripted', price: { inputPerMillion: 1, outputPerMillion: 2 } },
  instructions: 'Take notes.',
  maxOutputTokens: 100,
  heartbeat: '1s',
  contextWindow: { tokens: 1_500 },
});
