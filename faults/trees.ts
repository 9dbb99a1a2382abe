/** Trees of sessions in the lab: which sessions are below another one, and whether they agree. */
import type { BackgroundStart, Session, SessionState, ToolCall } from 'perdure';
import { textsOf } from '../src/contract/messages.ts';
import { childId } from '../src/contract/tree.ts';
import { lastText, openChildren, phaseOf } from '../src/session/state.ts';
import { usageOf } from '../src/session/sub-agents.ts';
import { wholeState } from '../src/temporal/past.ts';
import type { Breach } from './judge.ts';
import type { Observed, ObservedSession } from './observe.ts';
import { retried } from './patience.ts';
import type { Stage } from './stage.ts';
import { callTags, DELEGATE, type Task } from './story.ts';

/** The sessions that the calls of a session, and of those below it, have started. Their ids follow from the calls. */
export async function sessionsBelow(
  stage: Stage,
  session: Session,
): Promise<{ session: Session; task: Task }[]> {
  const { client, sessions } = stage.harness;
  const { calls } = await retried(async () => wholeState(client, await session.snapshot()));
  const below = calls
    .filter(({ name }) => Object.values<string>(DELEGATE).includes(name))
    .map(({ name, idempotencyKey, args }) => ({
      session: sessions.get(childId(session.id, name, idempotencyKey)),
      task: JSON.parse((args as unknown as { task: string }).task) as Task,
    }));
  const delegating = below.filter(({ task }) => task.below !== undefined);
  const lower = await Promise.all(delegating.map((each) => sessionsBelow(stage, each.session)));
  return [...below, ...lower.flat()];
}

/** The current state of each session that has a background sub-agent. */
export async function callers(stage: Stage): Promise<SessionState[]> {
  const found = stage.actors.map(async ({ session, task }) => {
    const below = task.below === task.background ? [] : await sessionsBelow(stage, session);
    const caller = below.find((each) => each.task.below === each.task.background);
    return retried(() => (caller?.session ?? session).snapshot());
  });
  return Promise.all(found);
}

/**
 * Whether a session rests and all sessions below it have ended. A sub-agent continues for a moment after its caller has
 * its report.
 */
export async function isQuiet(stage: Stage, session: Session): Promise<boolean> {
  const state = await retried(() => session.snapshot());
  const phase = phaseOf(state);
  const rests =
    phase === 'closed' || (phase === 'idle' && state.inbox.length === 0 && openChildren(state).length === 0);
  if (!rests) return false;
  const below = await sessionsBelow(stage, session);
  const phases = await Promise.all(
    below.map(async (each) => phaseOf(await retried(() => each.session.snapshot()))),
  );
  return phases.every((each) => each === 'closed');
}

type Problem = [Breach, string];

/**
 * Where a session that delegates disagrees with the sessions below it: in its calls, its sub-agents, or what the tree
 * has used.
 */
export function treeProblems(
  { sessions, story }: Pick<Observed, 'sessions' | 'story'>,
  { task, state }: Pick<ObservedSession, 'task' | 'state'>,
): Problem[] {
  if (task.below === undefined || state === null) return [];
  const problems: Problem[] = [];
  const isStopped = state.status.kind === 'cancelled';
  for (let turn = 1; turn <= task.turns; turn++) {
    const id = `${task.session}/${turn}`;
    const [tag] = callTags(task, turn);
    const calls = state.calls.filter(({ args }) => (args as { tag?: unknown } | null)?.tag === tag);
    const found = sessions.filter((each) => each.task.session === id);
    const [child] = found;
    if (calls.length > 1) problems.push(['duplicate', `${tag} was delegated ${calls.length} times`]);
    if (found.length > 1) problems.push(['duplicate', `${id} is ${found.length} sessions`]);
    if (child === undefined) problems.push(['stuck', `${id} was never started`]);
    if (child?.state?.status.kind === 'active') problems.push(['stuck', `${id} has not ended`]);
    const [call] = calls;
    if (call === undefined) continue;
    const isBackground = task.below === task.background;
    if (isBackground && story.step === 'caller-ended')
      problems.push(...stopProblems(state, call, child?.state));
    else if (isBackground) problems.push(...reportProblems(state, call, child?.state));
    // A cancelled session also cancels its sub-agents.
    else if (!isStopped) problems.push(...answerProblems(call, child?.state));
  }
  const own = sessions.filter((each) => `${each.task.session}/`.startsWith(`${task.session}/`));
  const sum = own.reduce((total, each) => total + (each.state?.budget.spent.nanoUsd ?? 0), 0);
  const { nanoUsd } = usageOf(state);
  if (nanoUsd !== sum) problems.push(['budget', `its tree has used ${nanoUsd}, its sessions ${sum}`]);
  return problems;
}

type Below = SessionState | null | undefined;

/** What is wrong with the answer of a sub-agent in the foreground, which is the result of its call. */
function answerProblems({ id, status, result }: ToolCall, child: Below): Problem[] {
  const content = JSON.stringify(result?.content ?? null);
  if (status.kind !== 'completed') return [['not-done', `${id} is ${status.kind}: ${content}`]];
  const said = JSON.stringify(child?.transcript.findLast(({ role }) => role === 'assistant')?.blocks ?? []);
  return said.includes(content) ? [] : [['loss', `${id} has ${content}, its sub-agent said ${said}`]];
}

/** What is wrong with the report of a background sub-agent. It must arrive once, as a message or in the result. */
function reportProblems({ transcript }: SessionState, call: ToolCall, child: Below): Problem[] {
  const { id, status, result } = call;
  if (status.kind !== 'completed')
    return [['not-done', `${id} is ${status.kind}: ${JSON.stringify(result?.content ?? null)}`]];
  const start = (result?.content ?? {}) as Partial<BackgroundStart>;
  const told = transcript.flatMap((message) => {
    const { report } = message;
    if (report?.call_id !== id) return [];
    return [{ session: report.session_id, status: report.status, text: textsOf(message).join() }];
  });
  // The sub-agent may end before its start is recorded.
  if (start.answer !== undefined)
    told.push({ ...start, text: JSON.stringify(start.answer) } as (typeof told)[0]);
  const [only] = told;
  if (only === undefined) return [['message-lost', `${id}: its sub-agent has ended, and no report has come`]];
  if (told.length > 1) return [['message-twice', `${id}: the report has come ${told.length} times`]];
  const said = child ? lastText(child) : '';
  const isOf = only.session === child?.sessionId && only.status === child.status.kind;
  if (isOf && said !== '' && only.text.includes(said)) return [];
  const fact = `${child?.sessionId} is ${child?.status.kind}: ${said}`;
  return [['loss', `${id}: the report is ${JSON.stringify(only)}, and ${fact}`]];
}

/** What is wrong with a background sub-agent whose caller ended first. It must end without a report. */
function stopProblems({ transcript }: SessionState, { id }: ToolCall, child: Below): Problem[] {
  const problems: Problem[] = [];
  const reports = transcript.filter(({ report }) => report?.call_id === id);
  if (reports.length > 0)
    problems.push(['message-twice', `${id}: a report has come to a caller that has ended`]);
  if (child?.status.kind !== 'cancelled')
    problems.push(['not-done', `${id}: its sub-agent is ${child?.status.kind}, and should be cancelled`]);
  return problems;
}
