/** Stores LangGraph's records in a thread that any process may delete at any time. */
import type { CheckpointSaver, PutOptions } from '../../contract/checkpoint.ts';
import { isPerdureError } from '../../contract/errors.ts';
import type { JsonObject } from '../../contract/json.ts';

/** Puts a record. Returns `false` when its parent is gone because the thread was deleted. Then nothing is stored. */
export async function putRecord(
  saver: CheckpointSaver,
  thread: string,
  state: JsonObject,
  options: PutOptions & { id: string },
): Promise<boolean> {
  const { id, parentId } = options;
  try {
    await saver.put(thread, state, options);
  } catch (error) {
    const refused = isPerdureError(error, 'CONFLICT') || isPerdureError(error, 'INVALID_ARGUMENT');
    const sought = parentId ?? id;
    if (!refused || (await saver.get(thread, { checkpointId: sought })) !== null) throw error;
    if (sought === parentId) return false;
    if (!isPerdureError(error, 'CONFLICT')) throw error;
    // The thread was deleted before this call, and the store has only now learnt of it.
    await saver.put(thread, state, options);
  }
  return true;
}
