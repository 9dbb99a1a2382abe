/** Runs the code of a tool. */
import { inspect } from 'node:util';
import { Context } from '@temporalio/activity';
import { type DefinedTool, parseArgs, type ToolContext } from '../agent/index.ts';
import type { ToolInput } from '../contract/activities.ts';
import type { ToolAnswer } from '../contract/calls.ts';
import { argsDigest, shortDigest } from '../contract/keys.ts';
import type { Fence } from './fence.ts';

export async function checkedArgs(
  tool: DefinedTool,
  input: ToolInput,
): Promise<{ ok: true; value: unknown } | { ok: false; problem: string }> {
  if (shortDigest(argsDigest(input.tool, input.args)) !== input.argsDigest) {
    return { ok: false, problem: `call ${input.callId} has other arguments than the history` };
  }
  const parsed = await parseArgs(tool, input.args);
  return parsed.ok
    ? parsed
    : { ok: false, problem: `Invalid arguments for ${input.tool}: ${parsed.problem}` };
}

/** What a tool's functions get beside their input. `session` is the session's context, parsed by the tool's schema. */
export function contextOf(
  input: { callId: string; idempotencyKey: string; scratchpadRoot?: string; answers?: ToolAnswer[] },
  session: unknown,
  { attempt, abortSignal, fence }: { attempt: number; abortSignal: AbortSignal; fence?: Fence },
): ToolContext {
  return {
    sessionId: Context.current().info.workflowExecution?.workflowId ?? '',
    callId: input.callId,
    toolCallId: input.callId,
    // The AI SDK's tools expect the field. We do not pass the transcript.
    messages: [],
    idempotencyKey: input.idempotencyKey,
    attempt,
    abortSignal,
    fence: async () => fence?.pass(abortSignal),
    answers: input.answers ?? [],
    ...(input.scratchpadRoot === undefined ? {} : { scratchpadRoot: input.scratchpadRoot }),
    context: session,
    // The AI SDK's name for it.
    experimental_context: session,
  };
}

/** Runs a tool. */
export async function execute(tool: DefinedTool, value: unknown, context: ToolContext): Promise<unknown> {
  const result = tool.execute(value, context);
  if (!isAsyncIterable(result)) return result;
  // The AI SDK's streaming tools: the last value is the result.
  let last: unknown;
  for await (const part of result) last = part;
  return last;
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<'aborted'> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve('aborted');
    else signal.addEventListener('abort', () => resolve('aborted'), { once: true });
  });
}

/** A tool's error as a text for the model. */
export function errorText(what: string, error: unknown): string {
  const text =
    error instanceof Error
      ? `${error.name}: ${error.message}`
      : typeof error === 'string'
        ? error
        : // `inspect` can show any thrown value, even one that cannot be converted to a string.
          inspect(error, { depth: 2, breakLength: Number.POSITIVE_INFINITY });
  return `${what} failed: ${text}`.slice(0, 4_000);
}
