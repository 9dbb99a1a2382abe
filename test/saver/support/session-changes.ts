/** States of sessions as people would hand them back. */
import type { Checkpoint, JsonObject, PutOptions, Session, SessionState } from '../../../src/index.ts';
import type { SessionStage } from './session-stage.ts';

/** Who and why. */
export const BY: PutOptions = { metadata: { by: 'ada', reason: 'kinder' } };

/** The latest checkpoint. */
export async function latestOf({ saver }: SessionStage, { id }: Session): Promise<Checkpoint> {
  const [latest] = await saver.list(id, { limit: 1 });
  if (latest === undefined) throw new Error('no checkpoint');
  return latest;
}

/** A checkpoint's state after a change. */
export function changed({ state }: Checkpoint, change: (state: SessionState) => void): JsonObject {
  const copy = structuredClone(state);
  change(copy as unknown as SessionState);
  return copy;
}

/** The latest state after a change. */
export async function latestWith(
  stage: SessionStage,
  session: Session,
  change: (state: SessionState) => void,
): Promise<JsonObject> {
  return changed(await latestOf(stage, session), change);
}

/** Changes the first message. */
export function rewrite({ transcript }: SessionState): void {
  const block = transcript[0]?.blocks[0];
  if (block?.kind !== 'text') throw new Error('no text');
  block.text = 'Look kindly.';
}

/** A change of the plan to one step. */
export function planOf(title: string): (state: SessionState) => void {
  return (state) => {
    state.plan = [{ id: 's1', title, postconditions: [], evidence: [], status: 'pending' }];
  };
}

/** The ids of all checkpoints, newest first. */
export async function ids({ saver }: SessionStage, { id }: Session): Promise<string[]> {
  return (await saver.list(id, { limit: 1_000 })).map((checkpoint) => checkpoint.id);
}
