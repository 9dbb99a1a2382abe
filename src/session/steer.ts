/** Passes cancellation, pause and resume down a tree: a session tells its open sub-agents what it was told itself. */
import { UNNAMED } from '../contract/calls.ts';
import type { SessionState } from '../contract/state.ts';
import type { Child, SteerInput } from '../contract/tree.ts';
import type { Step } from './events.ts';
import { flightOf, heartbeatMs, openChildren } from './state.ts';
import { isOver } from './sub-agents.ts';

/** How many sub-agents one activity tells. */
const AT_ONCE = 50;

type Told = NonNullable<Child['told']>;

/** Tells sub-agents what they have not been told yet; `null` when all have been told. */
export function steerStep(state: SessionState): Step | null {
  if (state.inFlight.some(({ kind }) => kind === 'steer')) return null;
  const late = openChildren(state).flatMap((child) => {
    const { told = 'run', callId, sessionId } = child;
    const to = wanted(state, child);
    // A sub-agent can be told only after it has been started.
    const isLate = told !== to && told !== 'cancel' && flightOf(state, callId, 'attach') === undefined;
    return isLate ? [{ sessionId, to, ...reasonOf(state, to, child) }] : [];
  });
  const [first] = late;
  if (first === undefined) return null;
  const { to, by, reason } = first;
  const same = late.filter((child) => child.to === to && child.reason === reason);
  const sessions = same.slice(0, AT_ONCE).map(({ sessionId }) => sessionId);
  const input: SteerInput = { sessions, to, by, reason };
  const summary = `tell ${sessions.length} sub-agents: ${to}`;
  return {
    type: 'issue',
    command: { kind: 'steer', seq: state.seq + 1, input, heartbeatMs: heartbeatMs(state), summary },
  };
}

function wanted(state: SessionState, { background }: Pick<Child, 'background'>): Told {
  const { cancelling, interrupted, paused, finishing } = state;
  if (cancelling !== null || background?.stop !== undefined) return 'cancel';
  if (background !== undefined && isOver(state) && (finishing || background.atEnd === 'cancel'))
    return 'cancel';
  if (paused !== null) return paused.requestedNow ? 'pause_now' : 'pause';
  // A sub-agent in the background does not belong to the interrupted turn.
  return interrupted && background === undefined ? 'cancel' : 'run';
}

function reasonOf(
  { cancelling, paused, sessionId }: SessionState,
  want: Told,
  { background }: Child,
): Pick<SteerInput, 'by' | 'reason'> {
  const said = want === 'cancel' ? cancelling : want === 'run' ? null : paused;
  if (said !== null) {
    // The sub-agent would take the name `temporal` for a cancellation of its own workflow.
    const by = said.by === 'temporal' || said.by === UNNAMED ? sessionId.slice(0, 200) : said.by;
    return { by, reason: said.reason };
  }
  const ended = background && (background.stop ?? `session ${sessionId} has given its answer`);
  const reason = want === 'cancel' ? (ended ?? 'a new message of the user came first') : '';
  return { by: sessionId.slice(0, 200), reason };
}

/** Records what sub-agents are being told. */
export function steering({ children = [] }: SessionState, { sessions, to }: SteerInput): void {
  for (const child of children) if (sessions.includes(child.sessionId)) child.told = to;
}

/** Makes the session resume all open sub-agents: each may wait for something of its own. */
export function resumeChildren(state: SessionState): void {
  for (const child of openChildren(state)) if (child.told !== 'cancel') child.told = 'pause';
}
