/**
 * Records which namespaces of a thread have checkpoints. Each new sub-graph asks for its latest checkpoint. Without a
 * marker record per namespace, that would search the whole thread.
 */
import type { CheckpointSaver } from '../../contract/checkpoint.ts';
import { isPerdureError } from '../../contract/errors.ts';
import { putRecord } from './put-record.ts';
import { markId } from './rows.ts';

/** The namespace of the outermost graph, which has no marker. */
const ROOT = '';

export class Namespaces {
  readonly #saver: CheckpointSaver;

  constructor(saver: CheckpointSaver) {
    this.#saver = saver;
  }

  /** Marks a namespace before its first checkpoint. If `around` is gone, the thread was deleted: nothing is stored. */
  async mark(thread: string, namespace: string, around: string | undefined): Promise<void> {
    if (!(await this.mayHave(thread, namespace))) await this.#put(thread, namespace, around);
  }

  async mayHave(thread: string, namespace: string): Promise<boolean> {
    return namespace === ROOT || (await this.#has(thread, namespace));
  }

  async #has(thread: string, namespace: string): Promise<boolean> {
    return (await this.#saver.get(thread, { checkpointId: markId(namespace) })) !== null;
  }

  async #put(thread: string, namespace: string, parentId: string | undefined): Promise<void> {
    try {
      await putRecord(this.#saver, thread, { marks: namespace }, { id: markId(namespace), parentId });
    } catch (error) {
      // Another process has marked it, with another parent.
      if (!isPerdureError(error, 'CONFLICT') || !(await this.#has(thread, namespace))) throw error;
    }
  }
}
