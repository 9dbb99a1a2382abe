/** What is wrong with the definition of a tool. */

import {
  choiceProblem,
  countProblem,
  durationProblem,
  kindProblem,
  LONGEST_TIMER,
  nameProblem,
} from './checks.ts';
import { compensationProblem } from './compensation.ts';
import { contextSchemaProblem, schemaProblem } from './input-schema.ts';
import type { ApprovalRules, Idempotency, ToolOptions } from './tool-options.ts';

export const OWN_NAMES: readonly string[] = [
  'description',
  'inputSchema',
  'context',
  'effect',
  'idempotency',
  'needsApproval',
  'approval',
  'timeout',
  'settle',
  'maxAttempts',
  'execute',
  'verify',
  'compensate',
  'perdure',
  'question',
  'agent',
  'builtIn',
];

/** Other fields of an AI SDK tool, for `defineTool({ ...tool, effect: 'read' })`. */
export const AI_SDK_NAMES: readonly string[] = [
  'type',
  'title',
  'outputSchema',
  'inputExamples',
  'providerOptions',
  'metadata',
  'strict',
  'onInputStart',
  'onInputDelta',
  'onInputAvailable',
  'toModelOutput',
];

const EFFECTS: readonly string[] = ['read', 'idempotent', 'mutate'];

const SCOPES: readonly string[] = ['call', 'message', 'session', 'global'];

/** The problem of a tool, with what to write instead, or `null`. */
export function toolProblem<INPUT, OUTPUT, CONTEXT>(
  options: ToolOptions<INPUT, OUTPUT, CONTEXT>,
): string | null {
  const { effect = 'mutate', idempotency, inputSchema } = options;
  if (typeof options.execute !== 'function') {
    return 'execute is missing: write execute: async (input, { idempotencyKey }) => …';
  }
  if (inputSchema === undefined || inputSchema === null) {
    return 'inputSchema is missing: write inputSchema: z.object({ … })';
  }
  const kind =
    choiceProblem('effect', effect, EFFECTS) ??
    contextSchemaProblem(options.context) ??
    kindProblem('description', options.description, 'a text');
  if (kind !== null) return kind;
  if (options.verify !== undefined && typeof options.verify !== 'function') {
    return "verify is not a function: write verify: async (input, { idempotencyKey }) => ({ outcome: 'landed', output })";
  }
  if (options.verify !== undefined && effect !== 'mutate') {
    return `verify is only for effect 'mutate', but this tool is '${effect}': remove verify, or write effect: 'mutate'`;
  }
  // A copy of an `agentTool` is checked here.
  const delegates = (options as { agent?: unknown }).agent !== undefined;
  const scope = delegates ? agentScopeProblem(idempotency) : null;
  if (scope !== null) return scope;
  if (typeof idempotency === 'object' && idempotency?.scope === 'global' && effect !== 'mutate') {
    return `idempotency.scope 'global' is only for effect 'mutate', but this tool is '${effect}': remove it, or write effect: 'mutate'`;
  }
  const { maxAttempts, timeout, settle, approval } = options;
  return (
    approvalProblem(options) ??
    compensationProblem(options) ??
    idempotencyProblem(idempotency) ??
    countProblem('maxAttempts', maxAttempts) ??
    durationProblem('timeout', timeout, { longest: LONGEST_TIMER }) ??
    durationProblem('settle', settle, { least: 0 }) ??
    expiryProblem(approval?.expires) ??
    choiceProblem('approval.onExpiry', approval?.onExpiry, ['approve', 'reject']) ??
    schemaProblem(options)
  );
}

/** `Infinity`, for example, is meant well: without the option, a call waits for ever. */
function expiryProblem(expires: ApprovalRules['expires']): string | null {
  const problem = durationProblem('approval.expires', expires);
  return problem && `${problem}, or leave it out: the call then waits for ever`;
}

/** The session of a sub-agent belongs to its caller, so equal calls of other sessions start others. */
export function agentScopeProblem(idempotency: unknown): string | null {
  const { scope } = (idempotency ?? {}) as { scope?: unknown };
  return scope === 'global'
    ? "idempotency.scope 'global' is not for agents, each of which works for one session: write 'session', and give the agent's own tools scope 'global'"
    : null;
}

/** Only `true` and a function ask a person. Anything else would let every call run, so it is refused. */
function approvalProblem(options: { needsApproval?: unknown; approval?: ApprovalRules }): string | null {
  const { needsApproval, approval } = options;
  if (!['undefined', 'boolean', 'function'].includes(typeof needsApproval)) {
    return `needsApproval is ${JSON.stringify(needsApproval)}: write true, false, or a function of the input`;
  }
  if (approval !== undefined && needsApproval === undefined) {
    return 'approval needs needsApproval. Write needsApproval: false if only questions and compensations wait for people';
  }
  return (
    nameProblem('approval.', approval, ['expires', 'onExpiry', 'people', 'byAnother', 'unverified']) ??
    approversProblem(approval ?? {})
  );
}

/** A rule that nobody could break, or nobody could keep, is a mistake. */
function approversProblem({ people, byAnother, unverified, onExpiry }: ApprovalRules): string | null {
  const isRuled = people !== undefined || byAnother !== undefined;
  const flags: [string, unknown][] = Object.entries({ byAnother, unverified });
  const flag = flags.find(([, value]) => value !== undefined && value !== true);
  if (flag !== undefined)
    return `approval.${flag[0]} is ${JSON.stringify(flag[1])}: write true, or leave it out`;
  if (isRuled && onExpiry === 'approve') {
    return "approval.onExpiry is 'approve': the call would run without the people that approval asks for. Write 'reject'";
  }
  if (unverified === true && !isRuled) {
    return 'approval.unverified has no effect without people or byAnother';
  }
  return people !== undefined && people > 10
    ? `approval.people is ${people}: the most is 10`
    : countProblem('approval.people', people);
}

/** With a wrong identity, all calls of a tool could count as one effect, and only the first would run. */
function idempotencyProblem(idempotency: unknown): string | null {
  if (idempotency === undefined || typeof idempotency === 'function') return null;
  if (typeof idempotency !== 'object' || idempotency === null || Array.isArray(idempotency)) {
    return `idempotency is ${JSON.stringify(idempotency)}: write { scope, args }, or a function of the input`;
  }
  const { scope, ttl, args } = idempotency as Exclude<
    Idempotency<unknown>,
    (input: never, options: never) => string
  >;
  const named: unknown = args;
  const areNames =
    named === undefined ||
    (Array.isArray(named) && named.length > 0 && named.every((name) => typeof name === 'string'));
  return (
    nameProblem('idempotency.', idempotency, ['scope', 'ttl', 'args']) ??
    choiceProblem('idempotency.scope', scope, SCOPES) ??
    durationProblem('idempotency.ttl', ttl) ??
    (ttl === undefined || scope === 'global'
      ? null
      : "idempotency.ttl is only for scope 'global': remove it, or write scope: 'global'") ??
    (areNames
      ? null
      : `idempotency.args is ${JSON.stringify(named)}: write names of arguments, such as ['orderId']`)
  );
}
