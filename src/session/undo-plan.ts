/** Lists what an undo would do. */
import { type EffectRef, isFinal, isSameEffect, isUndoable, type ToolCall } from '../contract/calls.ts';
import { defined, digestJson } from '../contract/json.ts';
import { effectsDigest } from '../contract/keys.ts';
import type { SessionState } from '../contract/state.ts';
import { childId, isChildOf } from '../contract/tree.ts';
import type { KeyedStep, UndoPlan, UndoStep } from '../contract/undo.ts';
import { effectId } from '../contract/workflow-ids.ts';
import { decides } from './edition.ts';
import { toolOf, wasStopped } from './state.ts';

/**
 * What would be undone now, the last effect first. The list leaves out calls that are running now.
 *
 * @param earlier - the effects of earlier runs, oldest first
 */
export function undoPlan(state: SessionState, earlier: readonly ToolCall[] = []): UndoPlan {
  const { digest, steps } = planOf(undoSteps(state, true));
  if (earlier.length === 0) return { digest, steps };
  return {
    digest: `${digest}.${earlierDigest(state, effectsDigest(earlier))}`,
    steps: [...steps, ...planOf(earlierSteps(state, earlier)).steps],
  };
}

/** The digest of the effects of earlier runs, and of the names of the tools that can undo effects. */
export function earlierDigest({ manifest }: SessionState, digest: string): string {
  const tools = Object.entries(manifest?.tools ?? {});
  return digestJson({
    digest,
    undone: tools.flatMap(([name, tool]) => (tool.compensate ? [name] : [])).sort(),
  });
}

/** The steps of an undo of effects of earlier runs, the last one first. */
export function earlierSteps(state: SessionState, earlier: readonly ToolCall[]): KeyedStep[] {
  return stepsOf(state, earlier, true);
}

/** A plan of these steps: the list without the keys, and its digest. */
export function planOf(keyed: readonly KeyedStep[]): UndoPlan {
  const steps = keyed.map(
    ({ callId, tool, args, output, by, reason, child }): UndoStep => ({
      callId,
      tool,
      args,
      output,
      by,
      ...defined({ reason, child }),
    }),
  );
  const digest = digestJson(
    steps.map(({ callId, tool, args, output, by }) => ({ callId, tool, args, output, by })),
  );
  return { digest, steps };
}

/**
 * The steps of an undo of the effects that the run knows, with the keys of these effects.
 *
 * @param whole - see {@link Undo}
 */
export function undoSteps(state: SessionState, whole = false): KeyedStep[] {
  return [...stepsOf(state, state.calls, whole), ...carriedSteps(state)];
}

function stepsOf(state: SessionState, calls: readonly ToolCall[], whole: boolean): KeyedStep[] {
  const steps = calls.toReversed().flatMap((call) => stepOf(state, call, whole));
  return whole ? steps.filter((step) => !isUndone(state, step)) : steps;
}

/** Whether an effect was undone after a rewind's checkpoint, or by this run, whose undo also reaches earlier runs. */
function isUndone({ carried, calls: own }: SessionState, effect: EffectRef): boolean {
  return (
    carried.some((each) => each.undone === true && isSameEffect(each, effect)) ||
    own.some(
      ({ compensates, status }) =>
        status.kind === 'completed' && compensates !== undefined && isSameEffect(compensates, effect),
    )
  );
}

function stepOf(state: SessionState, call: ToolCall, whole: boolean): KeyedStep[] {
  if (!isUndoable(call)) return [];
  const { id: callId, name: tool, args, status, result, idempotencyKey } = call;
  const below = undoneBelow(state, call);
  const about = { callId, tool, args, output: result?.content ?? null, idempotencyKey };
  const person = (reason: string): KeyedStep[] => [{ ...about, by: 'person', reason }];
  const isDoubtful = wasStopped(call) || (status.kind === 'failed' && !status.certain);
  const mayHaveBegun = status.kind === 'completed' || status.kind === 'awaiting' || isDoubtful;
  if (below !== null) return mayHaveBegun ? [{ ...about, by: 'person', ...below }] : [];
  if (status.kind === 'completed') {
    if (call.scope === 'global') return person('other sessions share the effect');
    if (whole && call.issuedAt !== null && call.issuedAt < state.createdAt)
      return person('the session that this one is a fork of has done it');
    return toolOf(state, call)?.compensate === undefined
      ? person('the tool has no compensate')
      : [{ ...about, by: 'tool' }];
  }
  // A message of the user came first, and the effect went on without its call.
  if (status.kind === 'skipped' && call.scope === 'global' && decides(state, 'undoListsGivenUp'))
    return person(`it may have happened since, in ${effectId(idempotencyKey)}`);
  return isDoubtful && isFinal(call) ? person('nobody knows whether it happened') : [];
}

/** The session of the call's sub-agent, and what a person types to undo its effects; `null` without a sub-agent. */
function undoneBelow(
  { children, manifest, origin, sessionId }: SessionState,
  call: Pick<ToolCall, 'name' | 'idempotencyKey'>,
): { child: string; reason: string } | null {
  const { name, idempotencyKey } = call;
  const child = children?.find((one) => isChildOf(one.sessionId, call));
  if (child === undefined && manifest?.tools[name]?.agent === undefined) return null;
  const above = origin?.kind === 'fork' ? origin.sessionId : sessionId;
  const id = child?.sessionId ?? childId(above, name, idempotencyKey);
  const isAtWork = child !== undefined && child.end === undefined;
  const why = isAtWork ? 'its sub-agent is at work. First' : 'its sub-agent has effects of its own';
  return { child: id, reason: `${why}: perdure cancel ${id} --undo` };
}

/** The steps for effects from before a rewind. Of these effects, only the output is known. */
function carriedSteps(state: SessionState): KeyedStep[] {
  return state.carried
    .filter(({ undone, compensates }) => undone !== true && compensates === undefined)
    .map(({ callId, tool, output, doubt, idempotencyKey }) => ({
      callId,
      tool,
      args: null,
      output,
      by: 'person' as const,
      reason: doubt ?? 'it is from before a rewind',
      ...undoneBelow(state, { name: tool, idempotencyKey }),
      idempotencyKey,
    }))
    .toReversed();
}
