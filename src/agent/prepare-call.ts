/** Prepares a call that the model asked for: checks its arguments, derives its key, decides whether a person must approve it. */
import { asSchema } from '@ai-sdk/provider-utils';
import type { PreparedCall } from '../contract/activities.ts';
import { defined, type JsonValue } from '../contract/json.ts';
import { baseKey } from '../contract/keys.ts';
import type { AgentRuntime } from './agent-runtime.ts';
import { type DefinedTool, scopeOf } from './define-tool.ts';

/** How long the checks of a reply's calls may take together, in milliseconds. */
const CHECKS_MS = 10_000;

/** When to stop waiting for checks: a tool's code may hang, and a paid reply waits for it. */
export interface Deadline {
  /** As `performance.now()`, in milliseconds. */
  until: number;
  /** Ends it at once. */
  signal?: AbortSignal;
}

/** The deadline of checks that begin now. */
export function deadline(signal?: AbortSignal): Deadline {
  return { until: performance.now() + CHECKS_MS, ...defined({ signal }) };
}

/**
 * The result of a check.
 *
 * @throws Error when the deadline comes first. A check that answers at once still counts.
 */
async function withDeadline<T>(check: T | PromiseLike<T>, { until, signal }: Deadline): Promise<T> {
  let stop = (): void => {};
  const ended = new Promise<never>((_, reject) => {
    stop = () => setImmediate(() => reject(new Error('the check did not answer in time')));
  });
  const timer = setTimeout(stop, Math.max(0, until - performance.now()));
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted === true) stop();
  try {
    return await Promise.race([check, ended]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

/** Checks arguments against a tool's schema. Returns the parsed value, or the problem. */
export async function parseArgs(
  tool: DefinedTool,
  args: JsonValue,
  waits: Deadline = deadline(),
): Promise<{ ok: true; value: unknown } | { ok: false; problem: string }> {
  const schema = asSchema(tool.inputSchema);
  if (schema.validate === undefined) return { ok: true, value: args };
  try {
    const checked = await withDeadline(schema.validate(args), waits);
    return checked.success
      ? { ok: true, value: checked.value }
      : { ok: false, problem: describe(checked.error) };
  } catch (error) {
    return { ok: false, problem: describe(error) };
  }
}

function describe(error: unknown): string {
  const issues = (error as { issues?: { path?: PropertyKey[]; message?: string }[] }).issues;
  if (Array.isArray(issues) && issues.length > 0) {
    return issues
      .map(({ path, message }) => `${path?.map(String).join('.') || 'input'}: ${message}`)
      .join('; ');
  }
  return error instanceof Error ? error.message : String(error);
}

/**
 * Prepares a call: checks its arguments, derives its key, and decides whether a person must approve it. If the deadline
 * comes first, a schema that did not answer makes the call invalid, and an approval that was not decided asks a person.
 */
export async function prepareCall(
  agent: AgentRuntime,
  request: { name: string; args: JsonValue; callId: string; namespace: string },
  waits: Deadline = deadline(),
): Promise<PreparedCall> {
  const { name, args, callId, namespace } = request;
  // A model may ask for a tool that is named as a property of every object.
  const tool = Object.hasOwn(agent.definition.tools, name) ? agent.definition.tools[name] : undefined;
  if (tool === undefined) {
    const names = Object.keys(agent.definition.tools).join(', ') || 'none';
    return { name, args, problem: `There is no tool ${name}. Tools: ${names}.` };
  }
  const parsed = await parseArgs(tool, args, waits);
  if (!parsed.ok) return { name, args, problem: `Invalid arguments for ${name}: ${parsed.problem}` };
  let identity: JsonValue;
  try {
    identity = identityOf(tool, parsed.value, args);
  } catch (error) {
    return { name, args, problem: `${name} could not derive its idempotency key: ${describe(error)}` };
  }
  const key = baseKey({ namespace, tool: name, scope: scopeOf(tool), callId, identity });
  const prepared: PreparedCall = { name, args, baseKey: key };
  return (await asksPerson(tool, parsed.value, callId, waits))
    ? { ...prepared, needsApproval: true }
    : prepared;
}

function identityOf(tool: DefinedTool, value: unknown, args: JsonValue): JsonValue {
  const { idempotency } = tool;
  if (typeof idempotency === 'function') {
    const identity: unknown = idempotency(value);
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
  callId: string,
  waits: Deadline,
): Promise<boolean> {
  const { needsApproval } = tool;
  if (typeof needsApproval !== 'function') return needsApproval === true;
  try {
    return await withDeadline(needsApproval(input, { toolCallId: callId, messages: [] }), waits);
  } catch {
    // When in doubt, a person looks.
    return true;
  }
}
