/** Deciding on calls by their ids, as they are when a test looks at them. */
import type { Decision, Resolution, Session } from '../../src/index.ts';

interface Done {
  callId: string;
  status: string;
}

/** A call as it waits now. Of one that does not wait nothing has been seen, so that the session says why. */
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

/** Says what became of the dispatch of a call that is in question now. */
export async function resolve(
  session: Session,
  callId: string,
  resolution: Resolution,
  options?: { by?: string; verified?: true },
): Promise<Done> {
  return session.resolve(await seen(session, callId), resolution, options);
}
