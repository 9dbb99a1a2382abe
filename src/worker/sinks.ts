/** The sinks with which workflow code reports to the worker. */
import type { InjectedSinks } from '@temporalio/worker';
import type { HandedPasts, IssuedCalls, RateGate, TranscriptMemory } from '../activities/index.ts';
import { RATE_LIMITED, type SessionEvent, type SessionEvents } from '../contract/telemetry.ts';
import { reportSession } from '../telemetry/index.ts';
import type { KnownAttributes } from './search-attributes.ts';

type Sinks = InjectedSinks<{
  perdure: {
    remember(piece: Parameters<TranscriptMemory['remember']>[1]): void;
    forget(): void;
    issued(call: Parameters<IssuedCalls['note']>[1]): void;
    leaves(past: Parameters<HandedPasts['note']>[1]): void;
    writes(searchAttributes: string[]): void;
    happened(events: SessionEvents): void;
  };
}>;

/** The sinks of a replay, which do nothing. */
export const NOWHERE: Sinks = {
  perdure: {
    remember: { fn: () => {} },
    forget: { fn: () => {} },
    issued: { fn: () => {} },
    leaves: { fn: () => {} },
    writes: { fn: () => {} },
    happened: { fn: () => {} },
  },
};

export function sinksOf(told: {
  memory: TranscriptMemory;
  issued: IssuedCalls;
  handed: HandedPasts;
  attributes: KnownAttributes | null;
  rates: RateGate | undefined;
}): Sinks {
  const { memory, issued, handed, attributes, rates } = told;
  return {
    perdure: {
      remember: { fn: (info, piece) => memory.remember(info.workflowId, piece), callDuringReplay: false },
      forget: { fn: ({ workflowId }) => memory.forget(workflowId), callDuringReplay: true },
      issued: {
        fn: (info, call) => issued.note(info, call),
        // In a replay, the call was scheduled earlier.
        callDuringReplay: false,
      },
      leaves: { fn: ({ runId }, past) => handed.note(runId, past), callDuringReplay: false },
      writes: {
        // Not awaited: the task must not wait for the server's list.
        fn: (info, names) => void attributes?.check(info, names),
        callDuringReplay: false,
      },
      happened: {
        fn: (info, happened) => {
          reportSession(info, happened);
          const hasLeft = happened.events.some((event) => event.kind === 'wait' && isLeft(event));
          if (hasLeft) rates?.leave(info.workflowId);
        },
        callDuringReplay: false,
      },
    },
  };
}

/** Whether a session has left the queue of a rate limit. */
function isLeft({ reason, outcome }: Extract<SessionEvent, { kind: 'wait' }>): boolean {
  return reason === RATE_LIMITED && outcome !== 'resumed';
}
