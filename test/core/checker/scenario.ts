/** What a walk of the checker starts from: an agent, what its model asks for, and what may happen how often. */
import { baseKey, effectNamespace } from '../../../src/contract/keys.ts';
import { EDITION } from '../../../src/contract/manifest.ts';
import type { BudgetLimits, JsonValue, Manifest, ToolManifest } from '../../../src/index.ts';
import type { Moment } from '../../../src/session/events.ts';

/** What people or the world may do only so often, so that the graph is finite. */
export type Chance =
  | 'queue'
  | 'interrupt'
  | 'aside'
  | 'asideFault'
  | 'pause'
  | 'pauseNow'
  | 'cancel'
  | 'undo'
  | 'giveUp'
  | 'seal'
  | 'raise'
  | 'modelFault'
  | 'unavailable'
  | 'limited'
  | 'released'
  | 'asks'
  | 'edit'
  | 'readFault'
  | 'checkpoint'
  | 'rewind'
  | 'fork'
  | 'terminate'
  | 'unstored';

/** A call that the scripted model asks for. */
export interface PlannedCall {
  tool: string;
  args: JsonValue;
  needsApproval?: true;
}

/** One walk. */
export interface Scenario {
  name: string;
  tools: { [name: string]: Partial<ToolManifest> };
  /** The batches that the model asks for, one a turn; after them it answers with text. */
  replies: readonly (readonly PlannedCall[])[];
  manifest?: Partial<
    Pick<
      Manifest,
      'toolOrder' | 'loopLimit' | 'budget' | 'contextWindow' | 'runTurns' | 'runsAtRest' | 'runsInReads'
    >
  >;
  mode?: 'chat' | 'task';
  budget?: BudgetLimits;
  /** Absent means never. */
  may: Readonly<Partial<Record<Chance, number>>>;
  /** Dispatches of one call after which a person does not say *absent* any more. Default: 3. */
  dispatches?: number;
  /** Whether the provider counts tokens; otherwise the reserve is charged. */
  usage?: 'counted' | 'uncounted';
  /** The settle assumption does not hold: a lost attempt can land for ever. */
  landsForEver?: true;
  /** How many inputs may arrive in one activation. Default: one. */
  together?: 2 | 3;
}

/** A clock that stands: no interleaving depends on how late it is, only on which timer fires when. */
export const MOMENT: Moment = { now: Date.UTC(2025, 0, 1), historyEvents: 3, historyBytes: 300 };

/** What the worker says the agent is. */
export function manifestOf(scenario: Scenario): Manifest {
  const tools = Object.entries(scenario.tools).map(([name, tool]): [string, ToolManifest] => [
    name,
    {
      name,
      description: name,
      inputSchema: {},
      effect: 'mutate',
      scope: tool.effect === 'read' ? 'call' : 'session',
      ttlMs: 0,
      verify: true,
      timeoutMs: 1_000,
      settleMs: 5_000,
      maxAttempts: 3,
      approval: { expiresMs: null, onExpiry: 'reject' },
      ...tool,
    },
  ]);
  return {
    schema: 1,
    agent: 'clerk',
    digest: 'digest',
    instructions: 'Be careful.',
    models: [{ id: 'test:model', maxOutputTokens: 100, price: { inputPerMillion: 3, outputPerMillion: 15 } }],
    tools: Object.fromEntries(tools),
    budget: {},
    loopLimit: 10,
    toolOrder: 'ordered',
    plan: false,
    heartbeatMs: 1_000,
    modelCallMs: 900_000,
    edition: EDITION,
    ...scenario.manifest,
  };
}

/** The call that the script has planned under an id of ours (`call_<turn>_<n>`). */
export function plannedCall(scenario: Scenario, callId: string): PlannedCall | undefined {
  const [, turn, n] = callId.split('_');
  return scenario.replies[Number(turn) - 1]?.[Number(n)];
}

/** The session that a walk starts with. */
export const SESSION = 's';
/** The fork of it. */
export const FORK = 'f';
/** The run that each of them was started by. A rewind keeps it. */
const FIRST_RUN: Readonly<Record<string, string>> = { [SESSION]: 'r', [FORK]: 'f1' };

const keys = new Map<string, string>();

/** The key of a call in a session, without the number of a message. */
export function keyOf(
  scenario: Scenario,
  sessionId: string,
  tool: string,
  args: JsonValue,
  callId: string,
): string {
  const scope = scenario.tools[tool]?.scope ?? (scenario.tools[tool]?.effect === 'read' ? 'call' : 'session');
  const name = [sessionId, tool, scope, JSON.stringify(args), scope === 'call' ? callId : ''].join('\n');
  let key = keys.get(name);
  if (key === undefined) {
    const namespace = effectNamespace(sessionId, FIRST_RUN[sessionId] ?? '');
    key = baseKey({ namespace, tool, scope, callId, identity: args });
    keys.set(name, key);
  }
  return key;
}
