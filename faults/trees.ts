/** Trees of sessions in the lab: which sessions are below another one, and whether they agree. */
import type { Session } from 'perdure';
import { childId } from '../src/contract/tree.ts';
import { usageOf } from '../src/session/sub-agents.ts';
import { wholeState } from '../src/temporal/past.ts';
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
    .filter(({ name }) => Object.values(DELEGATE).includes(name))
    .map(({ name, idempotencyKey, args }) => ({
      session: sessions.get(childId(session.id, name, idempotencyKey)),
      task: JSON.parse((args as unknown as { task: string }).task) as Task,
    }));
  const delegating = below.filter(({ task }) => task.below !== undefined);
  const lower = await Promise.all(delegating.map((each) => sessionsBelow(stage, each.session)));
  return [...below, ...lower.flat()];
}

/** Where a session that delegates is not what is below it: its calls, its sub-agents, what the tree has used. */
export function treeProblems(
  { sessions }: Pick<Observed, 'sessions'>,
  { task, state }: Pick<ObservedSession, 'task' | 'state'>,
): ['loss' | 'not-done' | 'duplicate' | 'stuck' | 'budget', string][] {
  if (task.below === undefined || state === null) return [];
  const problems: ReturnType<typeof treeProblems> = [];
  for (let turn = 1; turn <= task.turns; turn++) {
    const id = `${task.session}/${turn}`;
    const [tag] = callTags(task, turn);
    const calls = state.calls.filter(({ args }) => (args as { tag?: unknown } | null)?.tag === tag);
    const found = sessions.filter((each) => each.task.session === id);
    const [child] = found;
    if (calls.length > 1) problems.push(['duplicate', `${tag} was delegated ${calls.length} times`]);
    if (found.length > 1) problems.push(['duplicate', `${id} is ${found.length} sessions`]);
    if (child === undefined) problems.push(['stuck', `${id} was never started`]);
    const [call] = calls;
    if (call === undefined) continue;
    const said = child?.state?.transcript.findLast(({ role }) => role === 'assistant')?.blocks ?? [];
    if (call.status.kind !== 'completed')
      problems.push([
        'not-done',
        `${call.id} is ${call.status.kind}: ${JSON.stringify(call.result?.content ?? null)}`,
      ]);
    else if (!JSON.stringify(said).includes(JSON.stringify(call.result?.content)))
      problems.push([
        'loss',
        `${call.id} has ${JSON.stringify(call.result?.content)}, ${id} said ${JSON.stringify(said)}`,
      ]);
  }
  const own = sessions.filter((each) => `${each.task.session}/`.startsWith(`${task.session}/`));
  const sum = own.reduce((total, each) => total + (each.state?.budget.spent.nanoUsd ?? 0), 0);
  const { nanoUsd } = usageOf(state);
  if (nanoUsd !== sum) problems.push(['budget', `its tree has used ${nanoUsd}, its sessions ${sum}`]);
  return problems;
}
