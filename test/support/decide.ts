/** Decides on calls by their ids, with the arguments and dispatch that they have now. */
import type { Decision, Resolution, Session } from '../../src/index.ts';

interface Done {
  callId: string;
  status: string;
}

/**
 * The waiting call. For a call that does not wait, returns values that no call has, so that the session says why it
 * refuses.
 */
async function seen(session: Session, callId: string) {
  const waiting = await session.approvals();
  return waiting.find((call) => call.callId === callId) ?? { callId, argsDigest: 'not seen', dispatchNo: 0 };
}

/** Decides on a call with the arguments that it has now. */
export async function decide(
  session: Session,
  callId: string,
  decision: Decision,
  options?: { by?: string; verified?: true },
): Promise<Done> {
  return session.decide(await seen(session, callId), decision, options);
}

/** Says what became of the current dispatch of a call. */
export async function resolve(
  session: Session,
  callId: string,
  resolution: Resolution,
  options?: { by?: string; verified?: true },
): Promise<Done> {
  return session.resolve(await seen(session, callId), resolution, options);
}
