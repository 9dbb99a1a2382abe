import type { AgentRuntime } from '../agent/index.ts';
import type { JsonObject } from '../contract/json.ts';
import type { AgentUnavailable } from '../contract/model-call.ts';

/** Why a worker cannot use a session's context, or `null`. The message names the field, never its value. */
export async function contextMisfit(
  { definition }: AgentRuntime,
  context: JsonObject | undefined,
): Promise<AgentUnavailable | null> {
  const problem = await definition.contextProblem(context);
  if (problem === null) return null;
  return { kind: 'unavailable', reason: 'context_invalid', message: `${problem.message}. ${MEND}` };
}

const MEND =
  'Rewind or fork the session with a context that fits, or deploy a definition that accepts it and resume the session';
