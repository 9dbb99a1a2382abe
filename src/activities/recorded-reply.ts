/** Makes the record of a reply: its blocks, and its tool calls with their arguments checked. */
import type { Context } from '@temporalio/activity';
import { type AgentRuntime, deadline, prepareCall } from '../agent/index.ts';
import { defined, sha256Hex } from '../contract/json.ts';
import { shortDigest } from '../contract/keys.ts';
import { textsOf } from '../contract/messages.ts';
import type { ModelInput, ModelResult, PreparedCall } from '../contract/model-call.ts';
import { PLAN_TOOL } from '../contract/plan.ts';
import { checkOutput } from './output.ts';
import type { RequestedCall, RequestResult } from './reply-collector.ts';
import { modeOf } from './request-model.ts';
import type { Storing } from './storing.ts';

type Reply = Extract<ModelResult, { kind: 'reply' }>;
type Answer = Extract<RequestResult, { ok: true }>;

/** Finish reasons that are not recorded. */
const USUAL_ENDS: ReadonlySet<string> = new Set(['stop', 'tool-calls']);

/** Makes the record of a reply. The reply is paid for: a check that hangs must not prevent its record. */
export async function recordedReply(
  context: Context,
  agent: AgentRuntime,
  input: ModelInput,
  {
    result,
    model,
    instructions,
    fallbacks,
    storing,
  }: {
    result: Answer;
    /** Index of the model that gave the reply. */
    model: number;
    instructions: string;
    fallbacks: NonNullable<Reply['fallbacks']>;
    storing: Storing | undefined;
  },
): Promise<Reply> {
  const waits = deadline(context.cancellationSignal);
  const calls = await prepare(agent, input, result.calls, waits);
  const blocks = await recordedBlocks(result.blocks, storing);
  const isAnswer = calls.length === 0 && modeOf(input) === 'reply';
  const output = isAnswer ? await checkOutput(agent, textsOf({ blocks }).join('\n'), waits) : undefined;
  return {
    kind: 'reply',
    ...(model > 0 ? { model } : {}),
    blocks,
    calls,
    ...defined({ output }),
    ...(USUAL_ENDS.has(result.finishReason) ? {} : { finishReason: result.finishReason }),
    usage: result.usage,
    ...(agent.manifest.instructionsBytes === undefined
      ? {}
      : { instructions: shortDigest(sha256Hex(instructions)) }),
    ...(fallbacks.length === 0 ? {} : { fallbacks }),
  };
}

/** Stores the files that the model made. A file that cannot be stored becomes a text: the reply is paid for. */
async function recordedBlocks(
  blocks: Answer['blocks'],
  storing: Storing | undefined,
): Promise<Reply['blocks']> {
  const recorded: Reply['blocks'] = [];
  for (const block of blocks) {
    if (block.kind !== 'given_file') {
      recorded.push(block);
      continue;
    }
    const { media_type, bytes, metadata } = block;
    const stored = (await storing?.({ bytes, mediaType: media_type })) ?? {
      problem: 'the worker has no store of values',
    };
    recorded.push(
      'problem' in stored
        ? { kind: 'text', text: `[a file of ${media_type} was not kept: ${stored.problem}]` }
        : { kind: 'file', media_type, value: stored, ...defined({ metadata }) },
    );
  }
  return recorded;
}

async function prepare(
  agent: AgentRuntime,
  input: ModelInput,
  requested: readonly RequestedCall[],
  waits: ReturnType<typeof deadline>,
): Promise<PreparedCall[]> {
  const prepared: PreparedCall[] = [];
  const context = defined({ context: input.context });
  for (const [i, { name, args, metadata, unreadable }] of requested.entries()) {
    const callId = `call_${input.turn}_${i}`;
    const builtIn = name === PLAN_TOOL && agent.manifest.plan;
    const call: PreparedCall = unreadable
      ? { name, args, problem: `Invalid arguments for ${name}: they are not JSON.` }
      : builtIn
        ? { name, args }
        : await prepareCall(agent, { name, args, callId, ...context }, waits);
    prepared.push(metadata === undefined ? call : { ...call, metadata });
  }
  return prepared;
}
