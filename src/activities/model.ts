/** The `model` activity: one reply, from the first of the agent's models that gives one. */

import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { type AgentRuntime, instructionsFor } from '../agent/index.ts';
import { MODEL_ATTEMPTS } from '../contract/activities.ts';
import { messageOf } from '../contract/errors.ts';
import { LOST, UNKNOWN_KEY } from '../contract/failure.ts';
import { resultBytesOf } from '../contract/limits.ts';
import type { Message } from '../contract/messages.ts';
import type {
  ModelFailureKind,
  ModelInput,
  ModelResult,
  NoReplyReason,
  ReadEnd,
} from '../contract/model-call.ts';
import { outputRequest } from '../contract/output.ts';
import type { ValueStore } from '../contract/values.ts';
import { viewOf } from '../contract/view.ts';
import { asidePrompt } from './aside.ts';
import { compact, largest } from './compact.ts';
import { contextMisfit } from './context-misfit.ts';
import { Fence } from './fence.ts';
import { type Files, filesOf } from './files.ts';
import { lastFailure } from './last-failure.ts';
import { detailsBefore, type LiveOutlet, LiveSender } from './live-sender.ts';
import type { RequestFailure } from './model-errors.ts';
import { messagesWithFiles } from './prompt.ts';
import type { RateGate } from './rate-gate.ts';
import { Reading, stopReason } from './reads.ts';
import { recordedReply } from './recorded-reply.ts';
import type { RequestResult } from './reply-collector.ts';
import { modeOf, requestModel } from './request-model.ts';
import { shutDown } from './shut-down.ts';
import { type Storing, storingOf } from './storing.ts';
import { type FindAgent, newManifest, noAgent } from './tool.ts';
import { tracedRequest } from './traced.ts';
import { transcript } from './transcript.ts';
import type { TranscriptMemory } from './transcript-memory.ts';
import { Unasked } from './unasked.ts';

/** The type of failures after which Temporal may retry the attempt: none of its requests was billed. */
const UNBILLED = 'ProviderUnavailable';
/** The longest `retry-after` that a retry waits for, in milliseconds. For a longer one, the session waits visibly. */
const QUIET_MS = 60_000;

/** What the `model` activity needs of its worker. */
interface ModelRunner {
  find: FindAgent;
  memory: TranscriptMemory;
  began: (taskToken: string) => void;
  values?: ValueStore | undefined;
  outlet: LiveOutlet;
  rates: RateGate | undefined;
}

/** Asks the models in order. {@link ModelResult} lists the outcomes. */
export async function runModel(runner: ModelRunner, input: ModelInput): Promise<ModelResult> {
  const context = Context.current();
  const storing = storingOf(context, runner.values);
  const before = detailsBefore(context);
  const withReads = (result: ModelResult, reads: readonly ReadEnd[] = before.reads ?? []): ModelResult => {
    const cutShort = result.kind === 'failed' && result.failure === 'interrupted' && shutDown(context);
    const ended: ModelResult = cutShort ? { ...result, released: true } : result;
    return reads.length === 0 ? ended : { ...ended, reads: [...reads] };
  };
  // Check this first: the previous worker's request may have been billed.
  if (context.info.attempt > 1 && before.stage !== 'reading') {
    const end = await lastAttempt(context);
    if (end === 'lost')
      return withReads(failed('worker_lost', 'the worker that sent the request was lost', 1));
    if (end === 'failed')
      return withReads(failed('interrupted', 'the previous attempt failed unexpectedly', 1));
  }
  const unasked = new Unasked(context, before);
  const {
    prompt,
    result: known,
    reading,
  } = await unasked.during(() =>
    prepare(runner, input, { context, before: before.reads ?? [], unasked, storing }),
  );
  if (prompt === undefined) return withReads(known, reading?.ends);
  const reason = await unasked.pass(reading !== undefined);
  if (reason !== null) return withReads(noRequest(reason, reading), reading?.ends);
  runner.began(context.info.base64TaskToken);
  const live = new LiveSender(context, reading?.kept ?? [], runner.outlet);
  const { agent, messages, base, view, instructions, files } = prompt;
  try {
    const ask = (asked: readonly Message[]): Promise<ModelResult> =>
      askInOrder(context, agent, input, {
        messages: asked,
        instructions,
        files,
        storing,
        live,
        rates: runner.rates,
      });
    const result =
      input.compact === undefined
        ? named(await ask(view), view)
        : await compact(ask, { agent, input: input.compact, messages, base, view });
    return withReads(result, reading?.ends);
  } finally {
    live.stop();
  }
}

/** What a model is asked with. */
interface Prompt {
  agent: AgentRuntime;
  /** The transcript of the session from the message `base` on. */
  messages: readonly Message[];
  base: number;
  /** What the model sees of it. */
  view: readonly Message[];
  instructions: string;
  files: Files;
}

/** The prompt, or the result of a call that asks no model. */
type Prepared = { reading?: Reading | undefined } & (
  | { prompt: Prompt; result?: never }
  | { prompt?: never; result: ModelResult }
);

/** Runs the reads that come first, and collects what the prompt needs. */
async function prepare(
  { find, memory, values }: ModelRunner,
  input: ModelInput,
  {
    context,
    ...parts
  }: Pick<ConstructorParameters<typeof Reading>[0], 'context' | 'before' | 'unasked' | 'storing'>,
): Promise<Prepared> {
  const agent = find(input.agent);
  if (agent === undefined) return { result: noAgent(input.agent) };
  if (agent.manifest.digest !== input.manifest) return { result: newManifest(context, agent) };
  const misfit = await contextMisfit(agent, input.context);
  if (misfit !== null) return { result: misfit };
  const given = await instructionsFor(agent.definition, input.context, {
    bytes: agent.manifest.instructionsBytes ?? 0,
    signal: context.cancellationSignal,
  });
  if (!given.ok) {
    if (context.cancellationSignal.aborted) return { result: noRequest(stopReason(context)) };
    const message = `the instructions of ${input.agent} failed: ${given.problem}`;
    return { result: { kind: 'unavailable', reason: 'instructions_failed', message } };
  }
  const { output } = agent.manifest;
  const instructions =
    given.text + (output === undefined || input.aside !== undefined ? '' : outputRequest(output));
  let reading: Reading | undefined;
  try {
    const { messages, base } = await Promise.race([
      transcript(context, memory, input.digest),
      context.cancelled,
    ]);
    let view = viewOf(messages, base);
    if (input.first !== undefined) {
      reading = new Reading({ context, agent, input, messages, ...parts });
      const blocks = await reading.run(input.first);
      const reason = reading.noReply(blocks, resultBytesOf(input.first));
      if (reason !== null) return { result: { kind: 'results', reason }, reading };
      view = [...view, { id: '', role: 'tool', created_at: '', blocks }];
    }
    if (input.aside !== undefined) view = asidePrompt(view, messages, input.aside);
    // A store may be slow, or not answer at all.
    const files = await Promise.race([filesOf(context, values, messagesWithFiles(view)), context.cancelled]);
    return { prompt: { agent, messages, base, view, instructions, files }, reading };
  } catch (error) {
    const result = context.cancellationSignal.aborted
      ? noRequest(stopReason(context), reading)
      : failed('history', messageOf(error), 0);
    return { result, reading };
  }
}

/** The result of a call that must not ask a model any more. */
function noRequest(reason: NoReplyReason, reading?: Reading): ModelResult {
  if (reading !== undefined) return { kind: 'results', reason };
  return reason === 'not_wanted'
    ? failed('worker_lost', "the server did not confirm that the call is still this worker's", 0)
    : failed('interrupted', 'cancelled before the request', 0);
}

/** Names the largest message when the model refuses the prompt as too large. */
function named(result: ModelResult, view: readonly Message[]): ModelResult {
  if (result.kind !== 'failed' || result.failure !== 'context_window') return result;
  return { ...result, message: `${result.message}; ${largest(view)}` };
}

function failed(failure: ModelFailureKind, message: string, maybeBilled: number): ModelResult {
  return { kind: 'failed', failure, message, maybeBilled };
}

async function askInOrder(
  context: Context,
  agent: AgentRuntime,
  input: ModelInput,
  {
    messages,
    instructions,
    files,
    storing,
    live,
    rates,
  }: {
    messages: readonly Message[];
    instructions: string;
    files: Files;
    storing: Storing | undefined;
    live: LiveSender;
    rates: RateGate | undefined;
  },
): Promise<ModelResult> {
  const failures: { model: number; failure: RequestFailure }[] = [];
  const fence = new Fence(context);
  for (const [index, model] of agent.models.entries()) {
    if (index < (input.fromModel ?? 0)) continue;
    const request = {
      agent,
      instructions,
      model,
      maxOutputTokens: agent.maxOutputTokens[index] ?? 1,
      messages,
      files,
      mode: modeOf(input),
      abortSignal: context.cancellationSignal,
      // A summary is for the model only.
      onDelta: input.compact === undefined ? live.say : () => undefined,
    };
    const entry = (await rates?.enter(context, input, request, UNBILLED)) ?? null;
    if (entry?.kind === 'refused') return entry.result;
    try {
      // A worker that wakes from a freeze must not pay for a reply that its successor has recorded.
      await fence.passOnceOld();
    } catch (error) {
      entry?.end(null);
      return failed('worker_lost', messageOf(error), 0);
    }
    live.begin();
    const result = await tracedRequest(input, request, () =>
      requestModel({
        ...request,
        onAnswer: () => entry?.answered(),
        onHead: (head) => entry?.said(head),
      }),
    );
    entry?.end(result);
    if (result.ok) {
      return recordedReply(context, agent, input, {
        result,
        model: index,
        instructions,
        fallbacks: failures.map(({ model: at, failure }) => ({ model: at, message: failure.message })),
        storing,
      });
    }
    // Compact the prompt before another model is asked: a larger model would cost more from now on.
    if (result.failure.kind === 'context_window' && agent.manifest.contextWindow !== undefined)
      return failed('context_window', result.failure.message, 0);
    // Charge first what may have been billed. The next model needs a new reserve.
    if (result.failure.billed) return billedFailure(result, index);
    failures.push({ model: index, failure: result.failure });
    if (result.failure.limited === true && index === agent.models.length - 1) {
      // The provider's key is at its limit. Wait in the limiter's queue, which uses up no attempt.
      const next = await rates?.enter(context, input, request, UNBILLED);
      if (next?.kind === 'refused') return next.result;
      next?.end(null);
    }
  }
  return unbilledFailure(
    context,
    failures.map(({ failure }) => failure),
  );
}

function billedFailure({ failure }: Extract<RequestResult, { ok: false }>, model: number): ModelResult {
  const kind =
    failure.kind === 'rejected' || failure.kind === 'context_window'
      ? 'provider_rejected'
      : failure.kind === 'down'
        ? 'interrupted'
        : failure.kind;
  return { kind: 'failed', failure: kind, message: failure.message, maybeBilled: 1, model };
}

/** All models are down or refuse: Temporal retries the attempt while that can help. */
function unbilledFailure(context: Context, failures: readonly RequestFailure[]): ModelResult {
  const message = failures.map((failure) => failure.message).join('; ');
  const down = failures.filter(({ kind }) => kind === 'down');
  if (down.length === 0) return failed('provider_rejected', message, 0);
  if (context.info.attempt >= MODEL_ATTEMPTS) return failed('provider_unavailable', message, 0);
  const nextRetryDelay = Math.max(...down.map(({ retryAfterMs }) => retryAfterMs ?? 0));
  if (nextRetryDelay > QUIET_MS) {
    const seconds = Math.ceil(nextRetryDelay / 1_000);
    return failed('provider_unavailable', `${message}; it asks to wait ${seconds} seconds`, 0);
  }
  throw ApplicationFailure.create({
    message,
    type: UNBILLED,
    ...(nextRetryDelay > 0 ? { nextRetryDelay } : {}),
  });
}

/** How the previous attempt ended. `unbilled`: its failure says that nothing was billed. */
async function lastAttempt(context: Context): Promise<'unbilled' | 'lost' | 'failed'> {
  try {
    const type = (await lastFailure(context))?.type;
    if (type === UNBILLED || type === LOST.unbegun || type === UNKNOWN_KEY) return 'unbilled';
    return type && !Object.values<string>(LOST).includes(type) ? 'failed' : 'lost';
  } catch {
    return 'lost';
  }
}
