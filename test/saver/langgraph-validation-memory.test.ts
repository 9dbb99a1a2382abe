/** LangGraph's own validation of checkpointers, every case of it, on a store in memory. */
import * as validation from '@langchain/langgraph-checkpoint-validation';
import { expect, test } from 'vitest';
import { MemorySaver } from '../../src/index.ts';
import { LangGraphSaver } from '../../src/saver/langgraph/index.ts';
import { validateAll } from './support/validation.ts';

test('the validation has no other tests than those that are run here', () => {
  // `validate` is `specTest`, which runs four of these and its tests of `deleteThread`.
  expect(Object.keys(validation).sort()).toEqual([
    'deltaChannelHistoryTests',
    'getTupleTests',
    'listTests',
    'putTests',
    'putWritesTests',
    'specTest',
    'validate',
  ]);
});

validateAll({
  checkpointerName: 'LangGraphSaver over MemorySaver',
  createCheckpointer: () => new LangGraphSaver(new MemorySaver()),
});
