/** Turns the core's commands into Temporal's: activities, timers, cancellation. */
import type { Duration } from '@temporalio/common';
import {
  ActivityCancellationType,
  type ActivityOptions,
  CancellationScope,
  proxyActivities,
  proxyLocalActivities,
  sleep,
} from '@temporalio/workflow';
import { type ActivityOutcome, type SessionActivities, VERIFY_TRIES } from '../contract/activities.ts';
import { activityFailureInfo } from '../contract/failure.ts';
import type { Command, Outcome } from '../session/events.ts';

/** Time beyond a tool's own time-out in which its activity can still say what happened. */
const TIMEOUT_MARGIN_MS = 5_000;
/** Attempts of a model call within one command, while the provider is down or limits us. */
const MODEL_ATTEMPTS = 5;
/** Workers that may be lost while they verify: a frozen one takes the tasks of all polls that it had open. */
const VERIFY_WORKERS = 25;
/** The cap of a local activity, with room for it to say that it was exceeded. */
const LOCAL_TIMEOUT: Duration = '2s';

type Runnable = Exclude<Command, { kind: 'cancel' } | { kind: 'close' }>;

/** The commands in flight of one run: starts them, stops them, and hands over each outcome once. */
export class CommandRunner {
  readonly #scopes = new Map<number, CancellationScope>();
  readonly #deliver: (seq: number, outcome: Outcome) => void;

  constructor(deliver: (seq: number, outcome: Outcome) => void) {
    this.#deliver = deliver;
  }

  /** Starts a command. Its outcome arrives in a later activation, never in this one. */
  start(command: Runnable): void {
    const scope = new CancellationScope({ cancellable: true });
    this.#scopes.set(command.seq, scope);
    void scope
      .run(() => run(command))
      .then((outcome) => {
        this.#scopes.delete(command.seq);
        if (outcome !== null) this.#deliver(command.seq, outcome);
      });
  }

  /** Asks a command to stop; an activity still delivers its outcome, a timer does not. */
  stop(seq: number): void {
    this.#scopes.get(seq)?.cancel();
  }
}

async function run(command: Runnable): Promise<Outcome | null> {
  switch (command.kind) {
    case 'load': {
      const activities = remote(command.seq, { startToCloseTimeout: '2m', heartbeatTimeout: '10s' });
      return { kind: 'load', result: await settle(activities.load(command.input)) };
    }
    case 'describe':
      return {
        kind: 'describe',
        result: await settle(remote(command.seq, { startToCloseTimeout: '10s' }).describe(command.input)),
      };
    case 'model': {
      const activities = remote(command.seq, {
        startToCloseTimeout: '15m',
        heartbeatTimeout: command.heartbeatMs,
        retry: {
          initialInterval: '1s',
          backoffCoefficient: 2,
          maximumInterval: '60s',
          maximumAttempts: MODEL_ATTEMPTS,
        },
        summary: command.summary,
      });
      return { kind: 'model', result: await settle(activities.model(command.input)) };
    }
    case 'tool': {
      const activities = remote(command.seq, {
        startToCloseTimeout: command.timeoutMs + TIMEOUT_MARGIN_MS,
        heartbeatTimeout: command.heartbeatMs,
        retry: { initialInterval: '1s', maximumAttempts: command.maxAttempts },
        summary: command.summary,
      });
      return { kind: 'tool', result: await settle(activities.tool(command.input)) };
    }
    case 'global_tool': {
      // It only waits, and attaches again wherever it was lost; the effect it waits for guards itself.
      const activities = remote(command.seq, {
        startToCloseTimeout: '365d',
        heartbeatTimeout: command.heartbeatMs,
        retry: { initialInterval: '1s', maximumInterval: '60s' },
        summary: command.summary,
      });
      return { kind: 'tool', result: await settle(activities.globalTool(command.input)) };
    }
    case 'fast_tool': {
      const activities = proxyLocalActivities<SessionActivities>({
        startToCloseTimeout: LOCAL_TIMEOUT,
        retry: { maximumAttempts: 1 },
        summary: command.summary,
      });
      return { kind: 'tool', local: true, result: await settle(activities.fastTool(command.input)) };
    }
    case 'verify': {
      const activities = remote(command.seq, {
        startToCloseTimeout: VERIFY_TRIES * (command.timeoutMs + TIMEOUT_MARGIN_MS),
        heartbeatTimeout: command.heartbeatMs,
        retry: { initialInterval: '1s', maximumInterval: '10s', maximumAttempts: VERIFY_WORKERS },
        summary: command.summary,
      });
      return { kind: 'verify', result: await settle(activities.verify(command.input)) };
    }
    case 'prepare': {
      const activities = remote(command.seq, { startToCloseTimeout: '30s', summary: command.summary });
      return { kind: 'prepare', result: await settle(activities.prepare(command.input)) };
    }
    case 'timer':
      try {
        await sleep(command.ms, { summary: command.summary });
        return { kind: 'timer' };
      } catch {
        // Cancelled: the core has dropped it already.
        return null;
      }
    default:
      return command satisfies never;
  }
}

function remote(
  seq: number,
  options: ActivityOptions,
): ReturnType<typeof proxyActivities<SessionActivities>> {
  return proxyActivities<SessionActivities>({
    // The fold finds a command by its activity's id.
    activityId: String(seq),
    // The outcome of a cancelled call is what it says of itself, not that we asked.
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: { initialInterval: '1s', maximumAttempts: 5 },
    ...options,
  });
}

async function settle<T>(result: Promise<T>): Promise<ActivityOutcome<T>> {
  try {
    return { ok: true, value: await result };
  } catch (error) {
    return { ok: false, failure: activityFailureInfo(error) };
  }
}
