/** Turns the core's commands into Temporal's commands: activities, timers, cancellations. */
import {
  ActivityCancellationType,
  type ActivityOptions,
  CancellationScope,
  proxyActivities,
  sleep,
} from '@temporalio/workflow';
import { type ActivitiesByType, MODEL_ATTEMPTS, VERIFY_TRIES } from '../contract/activities.ts';
import { type ActivityOutcome, activityFailureInfo } from '../contract/failure.ts';
import { ACTIVITY } from '../contract/names.ts';
import type { Issued, Outcome } from '../session/events.ts';

/** Time beyond a tool's own time-out in which its activity can still say what happened. */
const TIMEOUT_MARGIN_MS = 5_000;
/**
 * How many more attempts Temporal makes of a repeatable tool, for workers that are lost before the tool begins. The
 * activity itself counts the attempts that have begun.
 */
const TOOL_WORKERS = 25;
/** The server accepts summaries of up to 400 bytes: 130 characters have at most 390. */
const SUMMARY_LENGTH = 130;

const RETRY = { initialInterval: '1s', maximumAttempts: 5 } as const;
/** Unlimited retries: a key or a store may be missing for long. The activity itself limits other failures. */
const PATIENT = { initialInterval: '1s', maximumInterval: '10s' } as const;

/** Shared by all commands: in a user's own bundle, the SDK records a stack for each promise. */
const DONE = Promise.resolve();

/** Starts and stops the commands of one run, and delivers each outcome once. */
export class CommandRunner {
  readonly #scopes = new Map<number, CancellationScope>();
  /** Scopes whose command has ended. They are used again, because each new scope makes three promises. */
  readonly #idle: CancellationScope[] = [];
  readonly #parent: CancellationScope;
  readonly #deliver: (seq: number, outcome: Outcome) => void;

  /** @param parent - the scope whose cancellation cancels the commands, wherever they are started */
  constructor(parent: CancellationScope, deliver: (seq: number, outcome: Outcome) => void) {
    this.#parent = parent;
    this.#deliver = deliver;
  }

  /** Starts a command. Its outcome arrives in a later activation, never in this one. */
  start(command: Issued): void {
    const { seq } = command;
    const scope = this.#idle.pop() ?? new CancellationScope({ cancellable: true, parent: this.#parent });
    this.#scopes.set(seq, scope);
    void scope.run(() => {
      run(command, (outcome) => {
        this.#scopes.delete(seq);
        if (!scope.consideredCancelled) this.#idle.push(scope);
        if (outcome !== null) this.#deliver(seq, outcome);
      });
      return DONE;
    });
  }

  /** Asks a command to stop. An activity still delivers its outcome, a timer does not. */
  stop(seq: number): void {
    this.#scopes.get(seq)?.cancel();
  }
}

/** Runs a command. Calls `ended` once, with `null` for a stopped timer, which the core has dropped already. */
function run(command: Issued, ended: (outcome: Outcome | null) => void): void {
  switch (command.kind) {
    case 'load': {
      const { [ACTIVITY.load]: load } = remote(command.seq, {
        startToCloseTimeout: '2m',
        heartbeatTimeout: '10s',
        retry: PATIENT,
      });
      settle(load(command.input), (result) => ended({ kind: 'load', result }));
      return;
    }
    case 'describe': {
      const summary = `describe ${command.input.agent}`.slice(0, SUMMARY_LENGTH);
      const { [ACTIVITY.describe]: describe } = remote(command.seq, { startToCloseTimeout: '10s', summary });
      settle(describe(command.input), (result) => ended({ kind: 'describe', result }));
      return;
    }
    case 'model': {
      const { [ACTIVITY.model]: model } = remote(command.seq, {
        startToCloseTimeout: command.timeoutMs + command.readsMs,
        heartbeatTimeout: command.heartbeatMs,
        retry: {
          initialInterval: '1s',
          backoffCoefficient: 2,
          maximumInterval: '60s',
          maximumAttempts: MODEL_ATTEMPTS,
        },
        summary: command.summary.slice(0, SUMMARY_LENGTH),
      });
      settle(model(command.input), (result) => ended({ kind: 'model', result }));
      return;
    }
    case 'reads': {
      const { [ACTIVITY.reads]: reads } = remote(command.seq, {
        startToCloseTimeout: command.readsMs + TIMEOUT_MARGIN_MS,
        heartbeatTimeout: command.heartbeatMs,
        retry: { initialInterval: '1s', maximumAttempts: command.maxAttempts },
        summary: command.summary.slice(0, SUMMARY_LENGTH),
      });
      settle(reads(command.input), (result) => ended({ kind: 'reads', result }));
      return;
    }
    case 'tool': {
      const { [ACTIVITY.tool]: tool } = remote(command.seq, {
        startToCloseTimeout: command.timeoutMs + TIMEOUT_MARGIN_MS,
        heartbeatTimeout: command.heartbeatMs,
        retry: {
          initialInterval: '1s',
          maximumInterval: '30s',
          maximumAttempts: command.input.effect === 'mutate' ? 1 : command.maxAttempts + TOOL_WORKERS,
        },
        summary: command.summary,
      });
      settle(tool(command.input), (result) => ended({ kind: 'tool', result }));
      return;
    }
    case 'attach': {
      // Temporal may repeat this activity: the effect's workflow has an id of its own and starts once.
      const { [ACTIVITY.attach]: attach } = remote(command.seq, {
        startToCloseTimeout: '1m',
        heartbeatTimeout: command.heartbeatMs,
        retry: { initialInterval: '1s', maximumInterval: '30s' },
        summary: command.summary,
      });
      settle(attach(command.input), (result) => ended({ kind: 'attach', result }));
      return;
    }
    case 'report': {
      const { [ACTIVITY.report]: report } = remote(command.seq, {
        startToCloseTimeout: '30s',
        heartbeatTimeout: command.heartbeatMs,
        summary: command.summary,
      });
      settle(report(command.input), (result) => ended({ kind: 'report', result }));
      return;
    }
    case 'verify': {
      const { [ACTIVITY.verify]: verify } = remote(command.seq, {
        startToCloseTimeout: VERIFY_TRIES * (command.timeoutMs + TIMEOUT_MARGIN_MS),
        heartbeatTimeout: command.heartbeatMs,
        retry: PATIENT,
        summary: command.summary,
      });
      settle(verify(command.input), (result) => ended({ kind: 'verify', result }));
      return;
    }
    case 'prepare': {
      const { [ACTIVITY.prepare]: prepare } = remote(command.seq, {
        startToCloseTimeout: '30s',
        retry: PATIENT,
        summary: command.summary,
      });
      settle(prepare(command.input), (result) => ended({ kind: 'prepare', result }));
      return;
    }
    case 'storePast': {
      // Retries until it succeeds: it stores to the server that runs the session.
      const { [ACTIVITY.storePast]: storePast } = remote(command.seq, {
        startToCloseTimeout: '2m',
        heartbeatTimeout: '10s',
        retry: { initialInterval: '1s', maximumInterval: '30s' },
        summary: command.summary,
      });
      settle(storePast(command.input), (result) => ended({ kind: 'storePast', result }));
      return;
    }
    case 'takenIds': {
      const { [ACTIVITY.takenIds]: takenIds } = remote(command.seq, {
        startToCloseTimeout: '15s',
        retry: { initialInterval: '1s', maximumInterval: '30s' },
        summary: command.summary,
      });
      settle(takenIds(command.input), (result) => ended({ kind: 'takenIds', result }));
      return;
    }
    case 'notify': {
      const { [ACTIVITY.notify]: notify } = remote(command.seq, {
        startToCloseTimeout: '10s',
        summary: command.summary.slice(0, SUMMARY_LENGTH),
      });
      settle(notify(command.input), (result) => ended({ kind: 'notify', result }));
      return;
    }
    case 'aside': {
      // The session itself asks again for a lost answer, so that each is charged.
      const { [ACTIVITY.aside]: aside } = remote(command.seq, {
        startToCloseTimeout: command.timeoutMs,
        heartbeatTimeout: command.heartbeatMs,
        retry: { initialInterval: '1s', maximumInterval: '60s', maximumAttempts: MODEL_ATTEMPTS },
        summary: command.summary.slice(0, SUMMARY_LENGTH),
      });
      settle(aside(command.input), (result) => ended({ kind: 'aside', result }));
      return;
    }
    case 'steer': {
      // Retries until it succeeds: a sub-agent that is not told goes on.
      const { [ACTIVITY.steer]: steer } = remote(command.seq, {
        startToCloseTimeout: '30s',
        heartbeatTimeout: command.heartbeatMs,
        retry: { initialInterval: '1s', maximumInterval: '30s' },
        summary: command.summary,
      });
      settle(steer(command.input), (result) => ended({ kind: 'steer', result }));
      return;
    }
    case 'draw': {
      const { [ACTIVITY.draw]: draw } = remote(command.seq, {
        startToCloseTimeout: '30s',
        heartbeatTimeout: command.heartbeatMs,
        retry: { initialInterval: '200ms', maximumInterval: '10s', maximumAttempts: 8 },
        summary: command.summary.slice(0, SUMMARY_LENGTH),
      });
      settle(draw(command.input), (result) => ended({ kind: 'draw', result }));
      return;
    }
    case 'timer':
      sleep(command.ms, { summary: command.summary }).then(
        () => ended({ kind: 'timer' }),
        () => ended(null),
      );
      return;
    default:
      command satisfies never;
  }
}

function remote(seq: number, options: ActivityOptions): ReturnType<typeof proxyActivities<ActivitiesByType>> {
  return proxyActivities<ActivitiesByType>({
    // The fold finds a command by its activity's id.
    activityId: String(seq),
    // A cancelled call reports its own outcome: it may have happened.
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    retry: RETRY,
    ...options,
  });
}

function settle<T>(result: Promise<T>, ended: (outcome: ActivityOutcome<T>) => void): void {
  result.then(
    (value) => ended({ ok: true, value }),
    (error: unknown) => ended({ ok: false, failure: activityFailureInfo(error) }),
  );
}
