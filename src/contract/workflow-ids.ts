/** Ids of the workflows that Perdure starts for itself. No session and no thread may have such an id. */

const EFFECT = 'effect:';
/** How these ids begin. */
export const RESERVED_PREFIXES: readonly string[] = [
  EFFECT,
  'perdure-thread/',
  'perdure-segment/',
  'perdure-content/',
  'perdure-archive/',
  'perdure-webhook/',
  'perdure-pool/',
  'perdure-rates/',
];

/** The id of the workflow of a global effect. */
export function effectId(idempotencyKey: string): string {
  return `${EFFECT}${idempotencyKey}`;
}

/** The id of the workflow that delivers the notifications of one activity of a session. */
export function webhookWorkflowId(runId: string, activityId: string): string {
  return `perdure-webhook/${runId}/${activityId}`;
}

/** The id of the workflow of a pool. */
export function poolWorkflowId(poolId: string): string {
  return `perdure-pool/${poolId}`;
}

/** The id of the workflow that keeps the limit of a provider's key for the workers of a task queue. */
export function rateLimiterId(taskQueue: string, key: string): string {
  return `perdure-rates/${taskQueue}/${key}`;
}

/** Why a session or a thread cannot have an id, or `null`. */
export function reservedProblem(id: string): string | null {
  const prefix = RESERVED_PREFIXES.find((reserved) => id.startsWith(reserved));
  return prefix === undefined
    ? null
    : `Perdure's own workflows use ids that begin with ${prefix}: choose another id`;
}
