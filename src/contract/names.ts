/** Names that cross the wire to Temporal. Histories record them: a name is added, never changed. */

/** Workflow types. */
export const WORKFLOW = {
  session: 'agentSession',
  thread: 'checkpointThread',
  segment: 'checkpointSegment',
  archive: 'archiveExporter',
  webhook: 'webhookDelivery',
  pool: 'budgetPool',
  rates: 'rateLimiter',
} as const;

/** The default task queue of sessions and their workers. */
export const DEFAULT_TASK_QUEUE = 'perdure';

/** Activity types of sessions. The prefix keeps them apart from a user's own activities on the same worker. */
export const ACTIVITY = {
  load: 'perdure.load',
  describe: 'perdure.describe',
  model: 'perdure.model',
  tool: 'perdure.tool',
  reads: 'perdure.reads',
  attach: 'perdure.attach',
  report: 'perdure.report',
  verify: 'perdure.verify',
  prepare: 'perdure.prepare',
  storePast: 'perdure.storePast',
  takenIds: 'perdure.takenIds',
  notify: 'perdure.notify',
  deliver: 'perdure.deliver',
  aside: 'perdure.aside',
  draw: 'perdure.draw',
  steer: 'perdure.steer',
} as const;

const ACTIVITY_KINDS: ReadonlyMap<string, string> = new Map(
  Object.entries(ACTIVITY).map(([kind, type]) => [type, kind]),
);

/** The key in {@link ACTIVITY} of an activity type, or `null` when it is no activity of a session. */
export function activityKind(type: string | null | undefined): keyof typeof ACTIVITY | null {
  return (ACTIVITY_KINDS.get(type ?? '') as keyof typeof ACTIVITY | undefined) ?? null;
}

/** Signals of a session, for Temporal clients in any language. */
export const SIGNAL = {
  send: 'send',
  pause: 'pause',
  resume: 'resume',
  cancel: 'cancel',
  /** To the workflow of a global effect: a call waits for its outcome. */
  awaitEffect: 'awaitEffect',
  /** To a session: look at the effect that a call waits for. Anybody may send it. */
  effectDone: 'effectDone',
  /** From a worker: which search attributes the server still knows. */
  searchAttributes: 'searchAttributes',
  /** To a session that waits for its pool: ask again. Anybody may send it. */
  poolChanged: 'poolChanged',
  /** From a sub-agent's session: it has ended. */
  childDone: 'childDone',
  /** From the limiter of a provider's key: it is the session's turn. Anybody may send it. */
  rateTurn: 'rateTurn',
} as const;

/** Updates of a session, validated before they are accepted. */
export const UPDATE = {
  send: 'sendMessage',
  decide: 'decide',
  resolve: 'resolve',
  budget: 'budget',
  edit: 'edit',
  seal: 'seal',
  withdraw: 'withdrawMessage',
  editMessage: 'editMessage',
} as const;

/**
 * The order in which the workflow registers its handlers. Signals and updates that arrive before the first workflow
 * task are delivered in this order, so the fold needs it, too.
 */
export const HANDLER_ORDER: readonly string[] = [
  SIGNAL.send,
  SIGNAL.pause,
  SIGNAL.resume,
  SIGNAL.cancel,
  SIGNAL.awaitEffect,
  SIGNAL.effectDone,
  SIGNAL.searchAttributes,
  SIGNAL.poolChanged,
  SIGNAL.childDone,
  SIGNAL.rateTurn,
  UPDATE.send,
  UPDATE.decide,
  UPDATE.resolve,
  UPDATE.budget,
  UPDATE.edit,
  UPDATE.seal,
  UPDATE.withdraw,
  UPDATE.editMessage,
];

/** Names of patches (Temporal's `patched`). A history with another name is from a newer version and is not folded. */
export const PATCH = {
  /** A pool tells a waiting session only when it would grant the session's request. */
  poolHoldsBack: 'perdure-pool-holds-back',
} as const;

/** Queries of a session. Results are plain JSON. */
export const QUERY = {
  wantsReply: 'wantsReply',
  state: 'state',
  snapshot: 'snapshot',
  transcript: 'transcript',
  queue: 'queue',
  calls: 'calls',
  approvals: 'approvals',
  budget: 'budget',
  plan: 'plan',
} as const;

/** Search attributes, all of type Keyword; registered by `perdure setup`. */
export const SEARCH_ATTRIBUTE = {
  agent: 'PerdureAgent',
  status: 'PerdureStatus',
  tenant: 'PerdureTenant',
} as const;
