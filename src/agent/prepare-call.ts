/** Prepares the calls that the model asked for. */

import { canonicalJson, type JsonObject, type JsonValue, sha256Hex } from '../contract/json.ts';
import type { PreparedCall } from '../contract/model-call.ts';
import type { AgentRuntime } from './agent-runtime.ts';
import { readContext } from './context.ts';
import type { DefinedTool } from './define-tool.ts';
import type { ApprovalOptions } from './tool-options.ts';
import { type Checked, type Deadline, deadline, describe, validate, withDeadline } from './validate.ts';

/** The longest identity that is recorded as text, in characters of JSON. A longer one is recorded as a digest. */
const IDENTITY_LENGTH = 256;

/** Checks arguments against a tool's schema. Returns the parsed value, or the problem. */
export async function parseArgs(
  tool: DefinedTool,
  args: JsonValue,
  waits: Deadline = deadline(),
): Promise<Checked> {
  return validate(tool.inputSchema, args, waits);
}

/**
 * Prepares a call: checks its arguments, finds its identity, and decides whether a person must approve it. If the
 * deadline comes first, a call whose schema did not answer is invalid, and a call whose `needsApproval` did not answer
 * asks a person.
 */
export async function prepareCall(
  agent: AgentRuntime,
  request: { name: string; args: JsonValue; callId: string; context?: JsonObject },
  waits: Deadline = deadline(),
): Promise<PreparedCall> {
  const { name, args, callId } = request;
  // A model may ask for a tool named `constructor` or another property of every object.
  const tool = Object.hasOwn(agent.definition.tools, name) ? agent.definition.tools[name] : undefined;
  if (tool === undefined) {
    const names = Object.keys(agent.definition.tools).join(', ') || 'none';
    return { name, args, problem: `There is no tool ${name}. Tools: ${names}.` };
  }
  const parsed = await parseArgs(tool, args, waits);
  if (!parsed.ok) return { name, args, problem: `Invalid arguments for ${name}: ${parsed.problem}` };
  const context = await readContext(agent.definition, request.context, tool, waits);
  if (!context.ok) return { name, args, problem: `${name} cannot run: ${context.problem}` };
  let identity: JsonValue | undefined;
  try {
    identity = identityOf(tool, parsed.value, context.value, args);
  } catch (error) {
    return { name, args, problem: `${name} could not derive its idempotency key: ${describe(error)}` };
  }
  const prepared: PreparedCall = { name, args, ...(identity === undefined ? {} : { identity }) };
  return (await asksPerson(
    tool,
    parsed.value,
    { toolCallId: callId, messages: [], context: context.value },
    waits,
  ))
    ? { ...prepared, needsApproval: true }
    : prepared;
}

/** What identifies the effect of a call, if that is not just all its arguments. */
function identityOf(
  tool: DefinedTool,
  value: unknown,
  context: unknown,
  args: JsonValue,
): JsonValue | undefined {
  const identity = namedIdentity(tool, value, context, args);
  const text = canonicalJson(identity);
  if (text === canonicalJson(args)) return undefined;
  return text.length > IDENTITY_LENGTH ? sha256Hex(text) : identity;
}

function namedIdentity(tool: DefinedTool, value: unknown, context: unknown, args: JsonValue): JsonValue {
  const { idempotency } = tool;
  if (typeof idempotency === 'function') {
    const identity: unknown = idempotency(value, { context });
    if (typeof identity !== 'string' || identity === '') throw new Error('the function must return a text');
    return identity;
  }
  const named: readonly string[] | undefined = idempotency?.args;
  if (named === undefined || typeof args !== 'object' || args === null || Array.isArray(args)) return args;
  return Object.fromEntries(named.map((name) => [name, args[name] ?? null]));
}

async function asksPerson(
  tool: DefinedTool,
  input: unknown,
  options: ApprovalOptions<unknown>,
  waits: Deadline,
): Promise<boolean> {
  const { needsApproval } = tool;
  if (typeof needsApproval !== 'function') return needsApproval === true;
  try {
    return await withDeadline(needsApproval(input, options), waits);
  } catch {
    // When in doubt, a person looks.
    return true;
  }
}
