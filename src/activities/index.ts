import { Context } from '@temporalio/activity';
import { type AgentRuntime, prepareCall } from '../agent/index.ts';
import type { ActivitiesByType } from '../contract/activities.ts';
import type { LiveChannel } from '../contract/live-text.ts';
import { ACTIVITY } from '../contract/names.ts';
import type { ValueStore } from '../contract/values.ts';
import { runDeliver, runNotify, type WebhookRunner } from '../webhooks/index.ts';
import { contextMisfit } from './context-misfit.ts';
import { runDraw } from './draw.ts';
import { runAttach, runReport } from './global-effect.ts';
import type { HandedPasts } from './handed-past.ts';
import type { IssuedCalls } from './issued-calls.ts';
import { attempted } from './last-failure.ts';
import { liveHere, SILENT } from './live-sender.ts';
import { runLoad } from './load.ts';
import { runModel } from './model.ts';
import type { RateGate } from './rate-gate.ts';
import { runReads } from './reads.ts';
import { runTakenIds } from './sealed-records.ts';
import { runStorePast } from './store-past.ts';
import { runSteer } from './sub-agent.ts';
import { missing, noAgent, runTool } from './tool.ts';
import { tracedTool, tracedVerify } from './traced.ts';
import type { TranscriptMemory } from './transcript-memory.ts';
import { runVerify } from './verify.ts';

export { backgroundTools } from './agent-status.ts';
export { HandedPasts } from './handed-past.ts';
export { IssuedCalls } from './issued-calls.ts';
export { RateGate } from './rate-gate.ts';
export { readValueTool } from './read-value.ts';
export { TranscriptMemory } from './transcript-memory.ts';

/** What the activities of a worker need. */
export interface ActivityOptions {
  agents: ReadonlyMap<string, AgentRuntime>;
  memory: TranscriptMemory;
  /** The mutating calls that the worker's workflows have issued. */
  issued: IssuedCalls;
  /** The pasts that the worker's workflows have handed over to be stored. */
  handed: HandedPasts;
  /** Called with the activity's task token in base64 when the tool of a mutation begins, or a model is asked. */
  began: (taskToken: string) => void;
  /** Our search attributes that are registered at the server. */
  searchAttributes: () => Promise<readonly string[]>;
  /** Stores the values that are too large for the history. */
  values: ValueStore | undefined;
  /** Carries live text of the models to streams in other processes. */
  live: LiveChannel | undefined;
  /** The rate limits of providers' keys. */
  rates: RateGate | undefined;
  webhooks: WebhookRunner;
}

/** The activities of sessions by their types, for a worker. */
export function createActivities({
  agents,
  memory,
  issued,
  handed,
  began,
  searchAttributes,
  values,
  live,
  rates,
  webhooks,
}: ActivityOptions): ActivitiesByType {
  const find = (name: string): AgentRuntime | undefined => agents.get(name);
  return {
    [ACTIVITY.load]: (input) => runLoad(values, input),
    [ACTIVITY.describe]: async ({ agent, context }) => {
      const found = find(agent);
      if (found === undefined) return noAgent(agent);
      return (
        (await contextMisfit(found, context)) ?? {
          kind: 'manifest',
          manifest: found.manifest,
          searchAttributes: [...(await searchAttributes())],
        }
      );
    },
    [ACTIVITY.model]: async (input) => {
      const { searchAttributes: written } = input;
      let known = written ?? [];
      // A paid reply does not wait for this: the session's next call brings what comes later.
      if (written !== undefined) void searchAttributes().then((found) => (known = [...found]));
      const result = await liveHere(live, (outlet) =>
        runModel({ find, memory, began, values, outlet, rates }, input),
      );
      return known.length === (written ?? []).length ? result : { ...result, searchAttributes: known };
    },
    [ACTIVITY.aside]: (input) => runModel({ find, memory, began, values, outlet: SILENT, rates }, input),
    [ACTIVITY.tool]: (input) => tracedTool(input, () => runTool({ find, issued, began, values }, input)),
    [ACTIVITY.reads]: (input) => runReads(find, memory, values, input),
    [ACTIVITY.attach]: (input) => runAttach(find, searchAttributes, values, input),
    [ACTIVITY.report]: runReport,
    [ACTIVITY.storePast]: (input) => runStorePast(handed, input),
    [ACTIVITY.takenIds]: runTakenIds,
    [ACTIVITY.verify]: (input) => tracedVerify(input, () => runVerify(find, values, input)),
    [ACTIVITY.prepare]: (input) =>
      attempted(Context.current(), async () => {
        const { tool: name, args, ...rest } = input;
        const agent = find(input.agent);
        return agent === undefined
          ? { name, args, problem: missing(find, input.agent) }
          : prepareCall(agent, { ...rest, name, args });
      }),
    [ACTIVITY.draw]: runDraw,
    [ACTIVITY.steer]: runSteer,
    [ACTIVITY.notify]: (input) => runNotify(webhooks, input),
    [ACTIVITY.deliver]: (input) => runDeliver(webhooks, input),
  };
}
