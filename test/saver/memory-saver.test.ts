import { describe, it } from 'vitest';
import { MemorySaver } from '../../src/index.ts';
import { checkpointSaverConformance } from '../../src/testing/index.ts';

checkpointSaverConformance(
  { name: 'MemorySaver', create: (clock) => new MemorySaver(clock) },
  { describe, it },
);
