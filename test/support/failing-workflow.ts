/** A session's workflow of a broken version: its task fails, whatever it is given. */
export async function agentSession(): Promise<void> {
  throw new Error('it cannot go on');
}
