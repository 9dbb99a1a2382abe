/** Runs reads in parallel: on their own, or before the model is asked. */
import { setTimeout as delay } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import {
  type AgentRuntime,
  type DefinedTool,
  type NotAttemptedError,
  parseArgs,
  readContext,
} from '../agent/index.ts';
import { isPerdureError, messageOf } from '../contract/errors.ts';
import { defined, type JsonObject, type JsonValue, jsonSize } from '../contract/json.ts';
import { readKey } from '../contract/keys.ts';
import { LIMIT } from '../contract/limits.ts';
import {
  type CallResult,
  type Message,
  resultBlocks,
  type ToolCallBlock,
  type ToolResultBlock,
} from '../contract/messages.ts';
import type {
  NoReplyReason,
  ReadCall,
  ReadEnd,
  ReadFirst,
  ReadResult,
  ReadsInput,
  ReadsResult,
} from '../contract/model-call.ts';
import type { ValueStore } from '../contract/values.ts';
import { isMain } from '../contract/view.ts';
import { Fence } from './fence.ts';
import { detailsBefore } from './live-sender.ts';
import { questionIn } from './questions.ts';
import { recorded } from './recordable.ts';
import { shutDown } from './shut-down.ts';
import { stopWith } from './stop-with.ts';
import { type Storing, storingOf } from './storing.ts';
import { type FindAgent, newManifest, noAgent, noTool } from './tool.ts';
import { aborted, contextOf, errorText, execute } from './tool-execution.ts';
import { tracedRead } from './traced.ts';
import { transcript } from './transcript.ts';
import type { TranscriptMemory } from './transcript-memory.ts';
import { Unasked } from './unasked.ts';

const BACKOFF = { firstMs: 1_000, maxMs: 30_000 };

/** The `reads` activity. */
export async function runReads(
  find: FindAgent,
  memory: TranscriptMemory,
  values: ValueStore | undefined,
  input: ReadsInput,
): Promise<ReadsResult> {
  const context = Context.current();
  const storing = storingOf(context, values);
  const before = detailsBefore(context);
  const agent = find(input.agent);
  if (agent === undefined) return noAgent(input.agent);
  if (agent.manifest.digest !== input.manifest) {
    return { ...newManifest(context, agent), ...(before.reads && { reads: [...before.reads] }) };
  }
  const unasked = new Unasked(context, before);
  return unasked.during(async () => {
    let messages: readonly Message[];
    try {
      ({ messages } = await transcript(context, memory, input.digest));
    } catch (error) {
      if (context.cancellationSignal.aborted) return { kind: 'results', reason: stopReason(context) };
      return { kind: 'unreadable', message: messageOf(error) };
    }
    const { reads = [] } = before;
    const reading = new Reading({ context, agent, input, messages, before: reads, unasked, storing });
    await reading.run(input);
    const stopped = context.cancellationSignal.aborted;
    return { kind: 'results', reason: stopped ? stopReason(context) : 'reads_only', reads: reading.ends };
  });
}

/** Why a call was stopped. */
export function stopReason(context: Context): NoReplyReason {
  return shutDown(context) ? 'released' : 'cancelled';
}

/** The reads of one activity. */
export class Reading {
  /** The reads that have ended. */
  readonly ends: ReadEnd[];
  readonly #context: Context;
  readonly #agent: AgentRuntime;
  readonly #given: JsonObject | undefined;
  readonly #calls: readonly ToolCallBlock[];
  readonly #running = new Set<string>();
  readonly #storing: Storing | undefined;

  constructor(options: {
    context: Context;
    agent: AgentRuntime;
    input: { context?: JsonObject };
    messages: readonly Message[];
    /** Reads that have ended in the previous attempt. */
    before: readonly ReadEnd[];
    unasked: Unasked;
    storing: Storing | undefined;
  }) {
    const { context, agent, input, messages, before, unasked, storing } = options;
    this.#storing = storing;
    this.#context = context;
    this.#agent = agent;
    this.#given = input.context;
    this.#calls = (messages.findLast(isMain)?.blocks ?? []).filter((block) => block.kind === 'tool_call');
    this.ends = [...before];
    unasked.reads = () => ({ reads: this.kept, running: [...this.#running] });
  }

  /** Results that heartbeats keep if this worker dies. */
  get kept(): ReadEnd[] {
    let left = LIMIT.keptReads;
    return this.ends.filter((end) => {
      left -= jsonSize(end);
      return left >= 0;
    });
  }

  /** Runs the reads that have not ended. @returns the results for the model, complete unless reads were stopped */
  async run({
    reads,
    ended = [],
    scratchpadRoot,
  }: Partial<ReadFirst> & Pick<ReadFirst, 'reads'>): Promise<ToolResultBlock[]> {
    const stop = stopWith(this.#context.cancellationSignal);
    const isLeft = ({ callId }: ReadCall): boolean => !this.ends.some((end) => end.callId === callId);
    const settings = scratchpadRoot === undefined ? {} : { scratchpadRoot };
    await Promise.all(reads.filter(isLeft).map((read) => this.#read(read, stop.signal, settings)));
    const results = new Map<string, CallResult>(ended.map(({ callId, ...result }) => [callId, result]));
    for (const { callId, result } of this.ends) {
      if (result.kind === 'asks') continue;
      if (result.kind !== 'output') {
        results.set(callId, { content: result.message, isError: true });
        continue;
      }
      const { output: content, modelOutput, value } = result;
      results.set(callId, { content, isError: false, ...defined({ modelOutput, value }) });
    }
    return resultBlocks(this.#calls.map(({ id, name }) => ({ id, name, result: results.get(id) ?? null })));
  }

  /** Why the results are not for the model now, or `null`. */
  noReply(blocks: readonly ToolResultBlock[], resultBytes: number): NoReplyReason | null {
    if (this.#context.cancellationSignal.aborted) return stopReason(this.#context);
    if (this.ends.some(({ result }) => result.kind === 'unavailable')) return 'unavailable';
    if (this.ends.some(({ result }) => result.kind === 'asks')) return 'asks';
    return jsonSize(blocks) > resultBytes ? 'large' : null;
  }

  async #read(
    { callId, args: edited, idempotencyKey: given, answers }: ReadCall,
    stop: AbortSignal,
    settings: { scratchpadRoot?: string },
  ): Promise<void> {
    const call = this.#calls.find(({ id }) => id === callId);
    const name = call?.name ?? '';
    const args = edited ?? call?.args ?? null;
    const { definition, manifest } = this.#agent;
    const tool = Object.hasOwn(definition.tools, name) ? definition.tools[name] : undefined;
    const { timeoutMs = 0, maxAttempts = 1 } = manifest.tools[name] ?? {};
    const { workflowId: sessionId = '', runId = '' } = this.#context.info.workflowExecution ?? {};
    // Differs from the recorded key only if a reset copied the activity into another run.
    const idempotencyKey = given ?? readKey({ sessionId, runId, tool: name, callId, args });
    const input = { callId, idempotencyKey, ...settings, ...defined({ answers }) };
    this.#running.add(callId);
    for (let attempt = this.#context.info.attempt; ; attempt++) {
      const startedAt = Date.now();
      const since = performance.now();
      const result =
        tool === undefined
          ? ({ kind: 'unavailable', message: noTool(manifest.agent, name) } as const)
          : await tracedRead({ agent: manifest.agent, callId, name, args }, () =>
              this.#attempt(tool, { ...input, name, args, timeoutMs }, attempt, stop),
            );
      if (result === null) return;
      if (result.kind === 'again' && attempt < maxAttempts) {
        const ms = Math.min(BACKOFF.maxMs, BACKOFF.firstMs * 2 ** (attempt - 1));
        await delay(ms, undefined, { signal: stop }).catch(() => {});
        continue;
      }
      this.#running.delete(callId);
      this.ends.push({
        callId,
        result: result.kind === 'again' ? { kind: 'error', message: result.message } : result,
        startedAt,
        ms: Math.round(performance.now() - since),
        ...(attempt > 1 ? { attempts: attempt } : {}),
      });
      return;
    }
  }

  /** One attempt; `null` when it was stopped. */
  async #attempt(
    tool: DefinedTool,
    input: Parameters<typeof contextOf>[0] & { name: string; args: JsonValue; timeoutMs: number },
    attempt: number,
    stopped: AbortSignal,
  ): Promise<ReadResult | { kind: 'again'; message: string } | null> {
    if (stopped.aborted) return null;
    const { name, timeoutMs } = input;
    const parsed = await parseArgs(tool, input.args);
    if (!parsed.ok) return { kind: 'error', message: `Invalid arguments for ${name}: ${parsed.problem}` };
    const session = await readContext(this.#agent.definition, this.#given, tool);
    if (!session.ok)
      return {
        kind: 'unavailable',
        message: `${session.problem}. Resume the session when it fits`,
        misfit: true,
      };
    const stop = stopWith(stopped);
    const late = `timed out after ${timeoutMs} ms`;
    const timer = setTimeout(() => stop.abort(new Error(late)), timeoutMs);
    const given = { attempt, abortSignal: stop.signal, fence: new Fence(this.#context) };
    const run = execute(tool, parsed.value, contextOf(input, session.value, given));
    try {
      const end = await Promise.race([run.then((output) => ({ output })), aborted(stop.signal)]);
      if (end !== 'aborted') {
        const limited = { callId: input.callId, resultLimit: this.#limit };
        return {
          kind: 'output',
          ...(await recorded(tool, parsed.value, limited, this.#storing, end.output)),
        };
      }
      run.catch(() => {});
      return stopped.aborted ? null : { kind: 'error', message: `${name} ${late}` };
    } catch (error) {
      if (stopped.aborted) return null;
      const question = questionIn(error);
      if (question !== null) return { kind: 'asks', question };
      const isTransient = isPerdureError(error, 'NOT_ATTEMPTED') && (error as NotAttemptedError).retryable;
      return { kind: isTransient ? 'again' : 'error', message: errorText(name, error) };
    } finally {
      clearTimeout(timer);
    }
  }

  /** The largest result that one call may have, in bytes. */
  get #limit(): number {
    return Math.min(LIMIT.toolResult, Math.floor(LIMIT.turnResults / this.#calls.length));
  }
}
