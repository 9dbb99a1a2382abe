import { describe, it } from 'vitest';
import { MemorySaver } from '../../src/saver/index.ts';
import { checkpointSaverConformance } from '../../src/testing/conformance/index.ts';

checkpointSaverConformance(
  { name: 'MemorySaver', create: (clock) => new MemorySaver(clock) },
  { describe, it },
);
