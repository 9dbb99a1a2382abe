/** An agent whose sessions continue in a new run after each turn: the module that worker processes load. */
import { type DefinedAgent, defineAgent } from '../../src/index.ts';

export const rolling: DefinedAgent = defineAgent({
  name: 'rolling',
  model: { model: 'scripted', price: { inputPerMillion: 1, outputPerMillion: 2 } },
  instructions: 'Take notes.',
  maxOutputTokens: 100,
  heartbeat: '1s',
  runTurns: 1,
});
