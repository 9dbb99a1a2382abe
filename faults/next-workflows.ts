/**
 * The workflows of a next version, for the lab's deploys: a session that starts under it does something new,
 * behind a patch; a session that started before it replays as before.
 */
import { patched, upsertMemo } from '@temporalio/workflow';
import { agentSession as session } from '../src/workflows/index.ts';

export { archiveExporter, checkpointSegment, checkpointThread } from '../src/workflows/index.ts';

export async function agentSession(...input: Parameters<typeof session>): ReturnType<typeof session> {
  // The lab looks for the memo: it is there only in a session whose first task ran this code. The session of a global
  // effect may begin after the deploy, and is judged by its fold, which does not know the patch of the next version.
  const [{ effect }] = input;
  if (effect === undefined && patched('lab-next-version')) upsertMemo({ labVersion: 'next' });
  return session(...input);
}
