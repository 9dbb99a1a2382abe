/** Queries of Temporal's visibility. */
import { type Client, type WorkflowExecutionInfo, WorkflowNotFoundError } from '@temporalio/client';
import { defineSearchAttributeKey } from '@temporalio/common';
import { isPerdureError, PerdureError } from '../contract/errors.ts';
import { SEARCH_ATTRIBUTE, WORKFLOW } from '../contract/names.ts';
import { WAITING_PHASES } from '../contract/state.ts';
import type { SessionSummary } from '../contract/views.ts';
import { sessionError } from './errors.ts';

/** Filters of a list, and its length. */
export interface SessionListOptions {
  agent?: string;
  /** As {@link SessionSummary.status}. `waits`: running, and in any status but `active` and `unknown`. */
  status?: string;
  tenant?: string;
  /** Only ids that begin with this. */
  prefix?: string;
  limit?: number;
}

/** The most sessions that a server returns at a time. */
const PAGE = 1_000;

/** Why visibility cannot find a text, or `null`: it compares some characters with their escapes. */
export function unsearchable(text: string): string | null {
  if (/["\\\p{Cc}]/u.test(text)) return 'contains a double quote, a backslash or a control character';
  return /^'|'$/.test(text) ? 'begins or ends with an apostrophe' : null;
}

/** A text in a query. @throws PerdureError `INVALID_ARGUMENT` when visibility cannot find it */
export function quoted(field: string, text: string): string {
  const problem = unsearchable(text);
  if (problem === null) return `'${text.replaceAll("'", "''")}'`;
  const message = `${field} ${problem}: Temporal cannot search for that`;
  throw new PerdureError('INVALID_ARGUMENT', message, { details: { field } });
}

/** See `Sessions.list`. */
export async function* listSessions(
  client: Client,
  options: SessionListOptions,
): AsyncGenerator<SessionSummary> {
  const query = queryOf(options);
  let left = options.limit ?? Number.POSITIVE_INFINITY;
  if (left <= 0) return;
  const infos = client.workflow.list({ query, pageSize: Math.min(left, PAGE) })[Symbol.asyncIterator]();
  for (; left > 0; left -= 1) {
    const next = await infos.next().catch((error: unknown) => {
      throw listError(error);
    });
    if (next.done === true) return;
    yield summary(next.value);
  }
}

/** How many sessions fit the filters. */
export async function countSessions(client: Client, options: SessionListOptions): Promise<number> {
  try {
    return (await client.workflow.count(queryOf(options))).count;
  } catch (error) {
    throw listError(error);
  }
}

function queryOf(options: SessionListOptions): string {
  const conditions = [`WorkflowType = '${WORKFLOW.session}'`];
  for (const key of ['agent', 'tenant'] as const) {
    const value = options[key];
    if (value !== undefined) conditions.push(`${SEARCH_ATTRIBUTE[key]} = ${quoted(key, value)}`);
  }
  if (options.prefix !== undefined) {
    conditions.push(`WorkflowId STARTS_WITH ${quoted('prefix', options.prefix)}`);
  }
  if (options.status !== undefined) conditions.push(statusCondition(options.status));
  return conditions.join(' AND ');
}

/** The tenant in a session's search attributes, or `null`. It is there before a worker has picked the session up. */
export async function shownTenant(client: Client, id: string): Promise<string | null> {
  try {
    return attributeOf(await client.workflow.getHandle(id).describe(), SEARCH_ATTRIBUTE.tenant);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw sessionError(id, error);
  }
}

function listError(error: unknown): unknown {
  const known = sessionError('list', error);
  if (!isPerdureError(known, 'INVALID_ARGUMENT')) return known;
  return new PerdureError(
    'INVALID_ARGUMENT',
    'The server cannot filter sessions: their search attributes are not registered. Register them: perdure setup',
    { cause: error },
  );
}

function summary(info: WorkflowExecutionInfo): SessionSummary {
  return {
    id: info.workflowId,
    agent: attributeOf(info, SEARCH_ATTRIBUTE.agent),
    status: statusOf(info, attributeOf(info, SEARCH_ATTRIBUTE.status)),
    tenant: attributeOf(info, SEARCH_ATTRIBUTE.tenant),
    taskQueue: info.taskQueue,
    startedAt: info.startTime.toISOString(),
    closedAt: info.closeTime?.toISOString() ?? null,
  };
}

/** The query for running sessions that meet a further condition. */
export function runningSessions(condition: string): string {
  return `WorkflowType = '${WORKFLOW.session}' AND ExecutionStatus = 'Running' AND ${condition}`;
}

function attributeOf(
  { typedSearchAttributes }: Pick<WorkflowExecutionInfo, 'typedSearchAttributes'>,
  name: string,
): string | null {
  return typedSearchAttributes.get(defineSearchAttributeKey(name, 'KEYWORD')) ?? null;
}

/** The query of a status, see {@link statusOf}. */
function statusCondition(status: string): string {
  if (status === 'terminated') return "ExecutionStatus = 'Terminated'";
  if (status === 'failed') return "ExecutionStatus = 'Failed'";
  if (status === 'waits') {
    const waiting = WAITING_PHASES.map((each) => `'${each}'`);
    return `ExecutionStatus = 'Running' AND ${SEARCH_ATTRIBUTE.status} IN (${waiting.join(', ')})`;
  }
  const said = `${SEARCH_ATTRIBUTE.status} = ${quoted('status', status)}`;
  if (status === 'completed' || status === 'cancelled') return said;
  // A session that was ended from outside keeps its last status attribute.
  const condition = status === 'unknown' ? `${SEARCH_ATTRIBUTE.status} IS NULL` : said;
  return `ExecutionStatus = 'Running' AND ${condition}`;
}

function statusOf(info: WorkflowExecutionInfo, said: string | null): string {
  const { name } = info.status;
  if (name === 'RUNNING') return said ?? 'unknown';
  // A session that ends itself completes its workflow. Other ends are Temporal's own.
  return name === 'COMPLETED' && said !== null ? said : name.toLowerCase();
}
