/** Holds a session against its own history: what every test of sessions asks at its end. */
import { type bundleWorkflowCode, Worker } from '@temporalio/worker';
import { expect } from 'vitest';
import { canonicalJson, type JsonValue } from '../../../src/contract/json.ts';
import { type Fold, foldHistory, readEvents } from '../../../src/history/index.ts';
import type { Session, SessionState } from '../../../src/index.ts';
import { workflowBundle } from '../../../src/worker/index.ts';
import type { Stage } from '../../support/stage.ts';

type History = Parameters<typeof Worker.runReplayHistory>[1];
type Bundle = Awaited<ReturnType<typeof workflowBundle>> | Awaited<ReturnType<typeof bundleWorkflowCode>>;

let bundle: Promise<Bundle> | undefined;

/** Replays a history with Temporal's own SDK; rejects when the workflow would ask for other commands. */
export async function replay(history: History, workflowId: string): Promise<void> {
  bundle ??= workflowBundle();
  const sinks = { perdure: { remember: { fn: () => {}, callDuringReplay: true } } };
  await Worker.runReplayHistory({ workflowBundle: await bundle, sinks }, history, workflowId);
}

/** The fold of a session's whole history, and a copy of the state at each of its checkpoints. */
export async function foldOf(
  stage: Stage,
  session: Session,
): Promise<Fold & { checkpoints: SessionState[]; events: number; bytes: number }> {
  const checkpoints: SessionState[] = [];
  const fold = await foldHistory(
    readEvents(stage.client, { workflowId: session.id }),
    stage.client.options.loadedDataConverter,
    { onTask: ({ state }) => void checkpoints.push(structuredClone(state)) },
  );
  const { historyLength, historySize = 0 } = await stage.client.workflow.getHandle(session.id).describe();
  return { ...fold, checkpoints, events: historyLength, bytes: historySize };
}

/**
 * Checks a session at rest: the fold of its history is its live state, each of its checkpoints keeps the
 * budget, and Temporal's own SDK replays the history.
 *
 * @returns the checkpoints, the last of which is the present state.
 */
export async function expectSound(stage: Stage, session: Session): Promise<SessionState[]> {
  const { state, checkpoints, end } = await foldOf(stage, session);
  if (end === null) expect(canonical(state)).toBe(canonical(await session.snapshot()));
  for (const checkpoint of checkpoints) expectWithinBudget(checkpoint);
  const history = await stage.client.workflow.getHandle(session.id).fetchHistory();
  await replay(history, session.id);
  return checkpoints;
}

/** What is spent and reserved never exceeds a cap; active time is only known once it is spent. */
function expectWithinBudget({ budget: { limits, spent, reserved } }: SessionState): void {
  const unlimited = Number.POSITIVE_INFINITY;
  expect(spent.turns).toBeLessThanOrEqual(limits.turns ?? unlimited);
  expect(spent.toolCalls).toBeLessThanOrEqual(limits.toolCalls ?? unlimited);
  expect(spent.inputTokens + spent.outputTokens + reserved.tokens).toBeLessThanOrEqual(
    limits.tokens ?? unlimited,
  );
  expect((spent.nanoUsd + reserved.nanoUsd) / 1e9).toBeLessThanOrEqual(limits.usd ?? unlimited);
  expect(reserved.tokens).toBeGreaterThanOrEqual(0);
  expect(reserved.nanoUsd).toBeGreaterThanOrEqual(0);
}

/** One text for equal states. */
export function canonical(value: unknown): string {
  return canonicalJson(value as JsonValue);
}
