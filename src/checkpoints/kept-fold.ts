import type { Client } from '@temporalio/client';
import { type FoldedTask, Folder } from '../history/index.ts';
import { type HistoryEvent, readEvents, readPages } from '../temporal/index.ts';
import { isUnderWay } from '../temporal/read-events.ts';

/** With more new events than this, reading the history from its start is cheaper. */
const FEW = 500;

/** The fold of one run. Each call continues it with the events since the last call. */
export class KeptFold {
  readonly #client: Client;
  readonly #execution: { workflowId: string; runId: string };
  #folder: Folder;
  #lastEvent = 0;
  /** Events at the end of a page, held back until another event follows. */
  #trailing: HistoryEvent[] = [];
  /** The last completed task. The fold goes on to change its state object. */
  task: FoldedTask | null = null;
  /** `step`: the number of the last completed task, from 1. `previous`: the event of the task before it. */
  step = 0;
  previous: number | null = null;

  constructor(client: Client, workflowId: string, runId: string) {
    this.#client = client;
    this.#execution = { workflowId, runId };
    this.#folder = this.#start();
  }

  /** Folds the new events. @throws as `foldHistory`. Then drop this object */
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
