import type { Client } from '@temporalio/client';
import { type FoldedTask, Folder } from '../history/index.ts';
import { type HistoryEvent, readEvents, readPages } from '../temporal/index.ts';
import { isUnderWay } from '../temporal/read-events.ts';

/** With more new events than this, it is cheaper to read the history from its start. */
const FEW = 500;

/** The fold of one run, which continues with the events since the last call. */
export class KeptFold {
  readonly #client: Client;
  readonly #execution: { workflowId: string; runId: string };
  #folder: Folder;
  #lastEvent = 0;
  /** Events at the end of a page, held back until another event follows. */
  #trailing: HistoryEvent[] = [];
  /** The last completed task. Its state belongs to the fold and will change. */
  task: FoldedTask | null = null;
  /** Number of the last completed task, from 1, and the event of the one before it. */
  step = 0;
  previous: number | null = null;

  constructor(client: Client, workflowId: string, runId: string) {
    this.#client = client;
    this.#execution = { workflowId, runId };
    this.#folder = this.#start();
  }

  /** Folds the new events. @throws as `foldHistory`. Drop this object then */
  async catchUp(): Promise<void> {
    this.#trailing = [];
    const recent = this.#lastEvent === 0 ? null : await this.#recent();
    if (recent === null) {
      this.#folder = this.#start();
      for await (const page of readPages(this.#client, this.#execution)) await this.#take(page);
    } else {
      await this.#take(recent.reverse());
    }
    await this.#folder.closeTask();
  }

  /** The events since the last call, newest first, or `null` when there are too many. */
  async #recent(): Promise<HistoryEvent[] | null> {
    const events: HistoryEvent[] = [];
    for await (const event of readEvents(this.#client, this.#execution, { backwards: true })) {
      if (Number(event.eventId) <= this.#lastEvent) return events;
      if (events.push(event) > FEW) return null;
    }
    return null;
  }

  /** Takes the events, except an uncompleted task at their end: see {@link isUnderWay}. */
  async #take(page: readonly HistoryEvent[]): Promise<void> {
    const events = [...this.#trailing, ...page];
    this.#trailing = events.splice(events.findLastIndex((event) => !isUnderWay(event)) + 1);
    await this.#folder.take(events);
    this.#lastEvent = Number(events.at(-1)?.eventId ?? this.#lastEvent);
  }

  #start(): Folder {
    this.task = null;
    this.step = 0;
    this.previous = null;
    return new Folder(this.#client.options, {
      runId: this.#execution.runId,
      onTask: (task) => {
        this.previous = this.task?.eventId ?? null;
        this.task = task;
        this.step += 1;
      },
    });
  }
}
