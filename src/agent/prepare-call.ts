/** A call that the model asked for: its arguments checked, its key, and whether a person must approve it. */
import { asSchema } from '@ai-sdk/provider-utils';
import type { PreparedCall } from '../contract/activities.ts';
import type { JsonValue } from '../contract/json.ts';
import { baseKey } from '../contract/keys.ts';
import type { AgentRuntime } from './agent-runtime.ts';
import { type DefinedTool, scopeOf } from './define-tool.ts';

/** How long the checks of a reply's calls may take together, in milliseconds. */
const CHECKS_MS = 10_000;

/** How long checks are waited for: the code of a tool may hang, and a reply that is paid for waits for it. */
export interface Patience {
  /** On the monotonic clock, in milliseconds. */
  until: number;
  /** Ends it at once. */
  signal?: AbortSignal;
}

/** Patience for the checks that begin now. */
export function patience(signal?: AbortSignal): Patience {
  return { until: performance.now() + CHECKS_MS, ...(signal === undefined ? {} : { signal }) };
}

/**
 * What a check comes to.
 *
 * @throws Error when patience ends first. A check that answers at once is heard also then.
 */
async function heard<T>(check: T | PromiseLike<T>, { until, signal }: Patience): Promise<T> {
  let stop = (): void => {};
  const ended = new Promise<never>((_, reject) => {
    stop = () => setImmediate(() => reject(new Error('the check gave no answer in time')));
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

/** Checks arguments against a tool's schema: the value that the schema made of them, or the problem in words. */
export async function parseArgs(
  tool: DefinedTool,
  args: JsonValue,
  waits: Patience = patience(),
): Promise<{ ok: true; value: unknown } | { ok: false; problem: string }> {
  const schema = asSchema(tool.inputSchema);
  if (schema.validate === undefined) return { ok: true, value: args };
  try {
    const checked = await heard(schema.validate(args), waits);
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
 * Prepares a call: checks its arguments, derives its key, and asks whether a person must approve it. When patience
 * ends, a schema that did not answer is a problem of the call, and a person looks at what it was not asked about.
 */
export async function prepareCall(
  agent: AgentRuntime,
  request: { name: string; args: JsonValue; callId: string; namespace: string },
  waits: Patience = patience(),
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
  waits: Patience,
): Promise<boolean> {
  const { needsApproval } = tool;
  if (typeof needsApproval !== 'function') return needsApproval === true;
  try {
    return await heard(needsApproval(input, { toolCallId: callId, messages: [] }), waits);
  } catch {
    // When in doubt, a person looks.
    return true;
  }
}
