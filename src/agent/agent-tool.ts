/** Agents as tools of other agents. */
import type { Duration } from '@temporalio/common';
import type { FlexibleSchema } from 'ai';
import * as z from 'zod';
import { PerdureError } from '../contract/errors.ts';
import type { AtEnd, BackgroundStart } from '../contract/tree.ts';
import type { DefinedAgent } from './agent-options.ts';
import { choiceProblem, durationProblem, kindProblem, LONGEST_TIMER, nameProblem } from './checks.ts';
import { checkedTool, type DefinedTool, NotAttemptedError } from './define-tool.ts';
import type { ToolOptions } from './tool-options.ts';
import { agentScopeProblem } from './tool-problem.ts';

/** Options of {@link agentTool}. */
export interface AgentToolOptions<INPUT = { task: string }>
  extends Pick<ToolOptions<INPUT, unknown>, 'idempotency' | 'needsApproval' | 'approval'> {
  /** When the model should use the agent. Required if the agent is given by name. Default: that it works on a task. */
  description?: string;
  /** The schema of what the model passes. Default: `z.object({ task: z.string() })`. */
  input?: FlexibleSchema<INPUT>;
  /** The agent's first message. Default: `task`, or the input as JSON. */
  message?: (input: INPUT) => string;
  /** The task queue of the agent's workers. Default: the caller's own. */
  taskQueue?: string;
  /**
   * The agent works in the background. The call returns a {@link BackgroundStart} at once, and the caller goes on. A
   * message tells it when the agent has ended. Its model gets the tools `agent_status` and `agent_stop`. Default: the
   * call waits for the agent.
   */
  background?: boolean;
  /** What happens to a background agent that still works when the caller's task ends. Default: `wait`. */
  atEnd?: AtEnd;
  /** How long to wait for the agent's report before looking at its session. Default: one minute, doubled each time. */
  recheck?: Duration;
}

const NAMES: readonly (keyof AgentToolOptions)[] = [
  'description',
  'input',
  'message',
  'taskQueue',
  'background',
  'atEnd',
  'recheck',
  'idempotency',
  'needsApproval',
  'approval',
];

const TASK = z.object({ task: z.string().min(1).describe('What to do, with all that is needed to do it.') });

/**
 * Makes an agent a tool of another agent. Each call starts a session of the agent. The session's answer is the call's
 * result: a text, or a value if the agent has an `output` schema. The session has its own transcript and effects, the
 * caller's context, and an id below the caller's. A call is one effect, as with any mutation: an equal call in answer
 * to the same message gets the same answer. The scope `global` is refused: an agent works for one session.
 *
 * A worker that has the caller has the agent, too. For an agent of other workers, give its name and a `taskQueue`.
 *
 * With `background`, the call does not wait: {@link AgentToolOptions.background}.
 *
 * - If the agent ends without an answer (it is cancelled, meets a cap, is unknown), the result is an error with the
 *   reason.
 * - On a lost worker: the agent's session goes on with the next worker. It is not started twice.
 * - On a replay of the workflow: the recorded result is used.
 *
 * @throws PerdureError `INVALID_DEFINITION` naming the field and what to write
 *
 * @example
 * ```ts
 * import { agentTool, defineAgent } from 'perdure';
 *
 * const researcher = defineAgent({ name: 'researcher', model: 'openai:gpt-5', instructions: 'Find sources.' });
 * export const writer = defineAgent({
 *   name: 'writer',
 *   model: 'openai:gpt-5',
 *   instructions: 'Write a report. Let the researcher look things up.',
 *   tools: { research: agentTool(researcher) },
 * });
 * ```
 */
export function agentTool<INPUT = { task: string }>(
  agent: string | DefinedAgent<never> | DefinedAgent<object>,
  options: AgentToolOptions<INPUT> & { background: true },
): DefinedTool<INPUT, BackgroundStart>;
export function agentTool<INPUT = { task: string }, OUTPUT = unknown>(
  agent: string | DefinedAgent<never, OUTPUT> | DefinedAgent<object, OUTPUT>,
  options?: AgentToolOptions<INPUT>,
): DefinedTool<INPUT, OUTPUT>;
export function agentTool<INPUT, OUTPUT>(
  agent: string | DefinedAgent<never, OUTPUT> | DefinedAgent<object, OUTPUT>,
  options: AgentToolOptions<INPUT> = {},
): DefinedTool<INPUT, OUTPUT> {
  const { description, input, message, taskQueue, recheck, background, atEnd, ...rest } = options;
  const name: unknown = typeof agent === 'string' ? agent : agent?.name;
  const problem =
    (typeof name === 'string' && name !== ''
      ? null
      : 'agentTool: write agentTool(agent), or the name of an agent') ??
    nameProblem('agentTool: ', options, NAMES) ??
    (typeof agent === 'string' && description === undefined
      ? `agentTool: description is missing: say when the model should give work to ${agent}`
      : null) ??
    (message === undefined || typeof message === 'function'
      ? null
      : 'agentTool: message is not a function: write message: (input) => …') ??
    (taskQueue === undefined || (typeof taskQueue === 'string' && taskQueue !== '')
      ? null
      : `agentTool: taskQueue is ${JSON.stringify(taskQueue)}: write the name of a task queue, or leave it out`) ??
    (background === undefined ? null : kindProblem('agentTool: background', background, 'true or false')) ??
    durationProblem('agentTool: recheck', recheck, { longest: LONGEST_TIMER }) ??
    choiceProblem('agentTool: atEnd', atEnd, ['wait', 'cancel']) ??
    (atEnd === undefined || background === true
      ? null
      : 'agentTool: atEnd is for agents in the background: add background: true, or leave atEnd out');
  const scope = agentScopeProblem(rest.idempotency);
  if (problem !== null || scope !== null)
    throw new PerdureError('INVALID_DEFINITION', problem ?? `agentTool: ${scope}`);
  const tool = checkedTool<INPUT, OUTPUT, unknown>({
    ...rest,
    description:
      description ??
      `Gives a task to the agent ${String(name)}${background === true ? ', which works in the background. A message tells you when it has ended' : ', and returns its answer'}.`,
    inputSchema: input ?? (TASK as unknown as FlexibleSchema<INPUT>),
    effect: 'mutate',
    ...(recheck === undefined ? {} : { timeout: recheck }),
    execute: () => {
      throw new NotAttemptedError('another agent answers the calls of this tool', { retryable: false });
    },
  });
  return {
    ...tool,
    agent: {
      name: String(name),
      ...(typeof agent === 'string' || taskQueue !== undefined ? {} : { definition: agent }),
      ...(taskQueue === undefined ? {} : { taskQueue }),
      ...(background === true ? { background: atEnd ?? 'wait' } : {}),
      message: (value) => messageOf(value, message as ((given: unknown) => string) | undefined),
    },
  };
}

function messageOf(value: unknown, message: ((input: unknown) => string) | undefined): string {
  if (message !== undefined) return message(value);
  const { task } = (value ?? {}) as { task?: unknown };
  return typeof task === 'string' ? task : JSON.stringify(value);
}

/** Whether one of an agent's tools is a background agent. */
export function hasBackground({ tools }: DefinedAgent): boolean {
  return Object.values(tools).some(({ agent }) => agent?.background !== undefined);
}

/** The agents and their sub-agents, at any depth. A listed agent replaces a sub-agent of the same name. */
export function withSubAgents(agents: readonly DefinedAgent[]): DefinedAgent[] {
  const all = [...agents];
  for (const { tools } of all) {
    for (const { agent } of Object.values(tools ?? {})) {
      const found = agent?.definition as DefinedAgent | undefined;
      if (found !== undefined && !all.some(({ name }) => name === found.name)) all.push(found);
    }
  }
  return all;
}
