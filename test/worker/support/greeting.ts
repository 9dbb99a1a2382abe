/** A workflow of a user's own, which knows nothing of sessions. */
export async function greeting(name: string): Promise<string> {
  return `Hello, ${name}.`;
}
