import { type ActivityFailureInfo, BEGAN, LOST } from './activities.ts';

interface ErrorLike {
  name?: string;
  message?: string;
  type?: string | null;
  timeoutType?: string;
  lastHeartbeatDetails?: unknown;
  cause?: unknown;
}

/**
 * Why an activity ended without a result. It reads Temporal's failures by name, so that the live workflow
 * (another realm) and a decoded history give the same words.
 */
export function activityFailureInfo(error: unknown): ActivityFailureInfo {
  const outer = (error ?? {}) as ErrorLike;
  const inner = outer.name === 'ActivityFailure' ? ((outer.cause ?? {}) as ErrorLike) : outer;
  switch (inner.name) {
    case 'TimeoutFailure':
      return {
        kind: 'timeout',
        message: `timed out (${inner.timeoutType ?? 'unknown'})`,
        ...(inner.lastHeartbeatDetails === BEGAN ? {} : { unbegun: true }),
      };
    case 'CancelledFailure':
      return { kind: 'cancelled', message: 'cancelled' };
    default: {
      const type = inner.type ?? inner.name ?? 'Error';
      const message = `${type}: ${(inner.message ?? '').slice(0, 2_000)}`;
      if (type === LOST.unbegun) return { kind: 'lost', message, unbegun: true };
      return { kind: type === LOST.worker ? 'lost' : 'failed', message };
    }
  }
}

/**
 * What a query fails with when Temporal has handed the workflow events ahead of their task (see the session's
 * shell). Nothing is wrong: the workflow leaves the cache, and the next query finds it whole.
 */
export const ASK_AGAIN = 'perdure: events came ahead of their workflow task, ask again';
