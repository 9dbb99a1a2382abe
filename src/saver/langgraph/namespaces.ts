/**
 * Which namespaces of a thread have checkpoints. Each sub-graph that begins asks for the latest of its own, and what has
 * none would be sought through the whole thread: so a record marks each namespace before its first checkpoint.
 */
import type { CheckpointSaver } from '../../contract/checkpoint.ts';
import { isPerdureError } from '../../contract/errors.ts';
import { putRecord } from './put-record.ts';
import { markId } from './rows.ts';

/** The namespace of the outermost graph, which needs no mark. */
const ROOT = '';

export class Namespaces {
  readonly #saver: CheckpointSaver;

  constructor(saver: CheckpointSaver) {
    this.#saver = saver;
  }

  /**
   * Marks a namespace, of which a checkpoint is to be stored that goes on from none of its own.
   *
   * @param around - the checkpoint of the graph around it: when it is gone, the thread was deleted, and nothing is stored
   */
  async mark(thread: string, namespace: string, around: string | undefined): Promise<void> {
    if (!(await this.mayHave(thread, namespace))) await this.#put(thread, namespace, around);
  }

  /** Whether a namespace may have checkpoints. */
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
      // Another has marked it as well, and around another checkpoint.
      if (!isPerdureError(error, 'CONFLICT') || !(await this.#has(thread, namespace))) throw error;
    }
  }
}
