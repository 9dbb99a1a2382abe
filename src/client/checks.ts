/** Checks what callers pass, before anything is sent. */
import { type Client, type WorkflowHandle, WorkflowNotFoundError } from '@temporalio/client';
import { invalid } from '../contract/errors.ts';
import { defined, type JsonObject, type JsonValue, toJson } from '../contract/json.ts';
import { assertSize, LIMIT } from '../contract/limits.ts';
import type { SessionInput } from '../contract/session-input.ts';
import { unknownInput } from '../contract/unknown-name.ts';
import { reservedProblem } from '../contract/workflow-ids.ts';
import { headroomProblem } from '../session/headroom.ts';
import { unsearchable } from '../temporal/visibility.ts';
import { refusePlain } from './refuse-plain.ts';

/** Checks a session's id. @throws PerdureError `INVALID_ARGUMENT` */
export function checkSessionId(id: unknown): asserts id is string {
  if (typeof id === 'string' && id.trim() !== '' && id.length <= LIMIT.sessionId) return;
  const found = typeof id === 'string' ? JSON.stringify(id.slice(0, 40)) : String(id);
  throw invalid('id', `${found} is not an id: write 1 to ${LIMIT.sessionId} characters, not only blanks`);
}

/** Refuses the ids of Perdure's own workflows. @throws PerdureError `INVALID_ARGUMENT` */
export function checkFreeId(id: unknown): asserts id is string {
  checkSessionId(id);
  const reserved = reservedProblem(id);
  if (reserved !== null) throw invalid('id', reserved);
}

/** Checks the id of a new session. @throws PerdureError `INVALID_ARGUMENT` */
export function checkNewId(id: unknown): asserts id is string {
  checkFreeId(id);
  const problem = unsearchable(id);
  if (problem === null) return;
  throw invalid('id', `${JSON.stringify(id)} ${problem}: Temporal cannot find a session by such an id`);
}

/** Checks that an input is plain JSON under the limit, with known names. */
export function checkInput(name: string, input: object, field: string, limit: number): JsonValue {
  const json = toJson(defined(input), field);
  assertSize(field, json, limit);
  const unknown = unknownInput(name, json);
  if (unknown !== null) throw invalid(unknown.field, unknown.problem);
  return json;
}

/** Refuses arguments that JavaScript would drop. @throws PerdureError `INVALID_ARGUMENT` */
export function refuseMore(more: readonly unknown[], field: string, problem: string): void {
  if (more.length > 0) throw invalid(field, problem);
}

/** Checks the history's headroom and the client's codecs before a signal is sent: a workflow cannot refuse a signal. */
export async function checkHeadroom(client: Client, handle: WorkflowHandle, name: string): Promise<void> {
  const found = await handle.describe().catch((error: unknown) => {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  });
  // The signal itself fails when the session is missing or closed.
  if (found?.status.name !== 'RUNNING') return;
  await refusePlain(client, handle.workflowId, found);
  const { historyLength, historySize = 0 } = found;
  const history = { events: historyLength, bytes: historySize, updates: 0 };
  const refusal = headroomProblem(handle.workflowId, name, history);
  if (refusal !== null) throw refusal;
}

/** An agent's definition, as far as a start needs it. */
export interface StartedAgent<CONTEXT extends object = object, OUTPUT = unknown> {
  readonly name: string;
  /** Only a type, never set: what a session takes as its context. */
  readonly contextInput?: CONTEXT;
  /** Only a type, never set: what a session answers with. */
  readonly outputValue?: OUTPUT;
  readonly models: readonly { readonly price?: unknown }[];
  contextProblem(
    context: JsonObject | undefined,
  ): Promise<{ field: string; problem: string; message: string } | null>;
}

/** @throws PerdureError `INVALID_ARGUMENT` naming the field */
export async function checkStart(agent: StartedAgent, { context, budget }: SessionInput): Promise<void> {
  if (budget?.usd !== undefined && agent.models.some(({ price }) => price === undefined)) {
    throw invalid(
      'budget.usd',
      `agent ${agent.name} has a model without a price, so there can be no usd cap. Set its price in defineAgent, or cap tokens`,
    );
  }
  const problem = await agent.contextProblem(context);
  if (problem !== null) throw invalid(problem.field, problem.problem);
}
