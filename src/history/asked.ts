/** Compares the core's commands with the events of a history. If they differ, another program wrote the history. */
import type { Command } from '../session/events.ts';
import { corrupt } from './event-inputs.ts';

/** A command of a completed task, as its event shows it. */
export interface Shown {
  eventId: number;
  /** The type of an activity, or `timer`. */
  type: string;
  /** The id of the activity or the timer. */
  id: string;
}

/** A command that the history has not shown so far. */
interface Asked {
  type: string;
  /** Then the history may never show it: a command that is stopped in the task that issues it is not sent. */
  stopped: boolean;
}

/** The commands that the core has asked for. */
export class AskedCommands {
  readonly #open = new Map<number, Asked>();
  /** The commands of timers, in order: the SDK counts timers, and the count is a timer's id. */
  readonly #timers: number[] = [];
  /** Timers that the history has shown, by their id. */
  readonly #started = new Map<string, number>();

  /** Adds the core's commands. @returns the numbers of the commands that the server was asked for */
  take(commands: readonly Command[]): number[] {
    const sent: number[] = [];
    for (const command of commands) {
      if (command.kind === 'close' || command.kind === 'continue') continue;
      const { kind, seq } = command;
      if (kind === 'cancel') {
        const asked = this.#open.get(seq);
        if (asked !== undefined) asked.stopped = true;
        continue;
      }
      if (kind === 'timer') this.#timers.push(seq);
      this.#open.set(seq, { type: kind, stopped: false });
      sent.push(seq);
    }
    return sent;
  }

  /** The number of the command that started the timer with this id. */
  timer(timerId: string): number | undefined {
    return this.#started.get(timerId);
  }

  /**
   * Compares a task's events with the commands.
   *
   * @param due - the commands that this task must show
   */
  check(taskId: number, shown: readonly Shown[], due: readonly number[]): void {
    for (const { eventId, type, id } of shown) {
      const timer = type === 'timer';
      const seq = timer ? (this.#timers[Number(id) - 1] ?? 0) : Number(id);
      if (this.#open.get(seq)?.type !== type) {
        const what = timer ? `starts timer ${id}` : `schedules ${type} as activity ${id}`;
        throw corrupt(`event ${eventId} ${what}, which the session did not ask for`);
      }
      this.#open.delete(seq);
      if (timer) this.#started.set(id, seq);
    }
    for (const seq of due) {
      const asked = this.#open.get(seq);
      if (asked === undefined || asked.stopped) continue;
      throw corrupt(`task ${taskId} lacks command ${seq}, a ${asked.type} that the session asked for`);
    }
  }
}
