/** An agent that speaks into the Redis at `LIVE`. What holds the word `SEALED` is sealed. */
import { defineAgent, RedisLiveChannel, type SessionWorkerOptions } from '../../src/index.ts';
import { Codec } from './codec.ts';

const { LIVE = '', SEALED } = process.env;

export const speaker: ReturnType<typeof defineAgent> = defineAgent({
  name: 'speaker',
  model: 'any:model',
  instructions: 'Speak.',
});

export const workerOptions: Partial<SessionWorkerOptions> = {
  live: new RedisLiveChannel(LIVE),
  ...(SEALED && { dataConverter: { payloadCodecs: [new Codec(SEALED)] } }),
};
