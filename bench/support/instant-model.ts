/** A language model in this process that answers at once, so that a measurement shows the runtime and not HTTP. */
import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3Prompt,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
} from '@ai-sdk/provider';
import { SUMMARY_REQUEST } from '../../src/contract/view.ts';
import { callArgs, type Job, readJob, replyText } from './job.ts';
import type { Counted, PromptCache } from './prompt-cache.ts';

/**
 * Called for each request with the run, the turn that it begins (1, 2, …, or 0 for a summary), and its tokens if they
 * are counted.
 */
export type OnRequest = (job: Job, turn: number, counted?: Counted) => void;

/**
 * Makes the model. It calls the run's tool once in each of its turns, and then ends with text.
 *
 * @param cache - counts the tokens; without it, they grow with the turns
 */
export function instantModel(onRequest: OnRequest = () => {}, cache?: PromptCache): LanguageModelV3 {
  const answer = (request: LanguageModelV3CallOptions): Answer => {
    const { prompt } = request;
    const job = jobOf(prompt);
    const counted = cache?.count(job.id, request);
    if (isSummary(prompt)) {
      onRequest(job, 0, counted);
      return { content: [{ type: 'text', text: SUMMARY }], finishReason: STOP, usage: usageOf(counted) };
    }
    const turn = lastReply(prompt) + 1;
    onRequest(job, turn, counted);
    return answerOf(job, turn, counted ?? { tokens: 500 * turn, cached: 0 });
  };
  return answering(answer);
}

/** A model that answers at once with the result of a function. */
export function answering(answer: (request: LanguageModelV3CallOptions) => Answer): LanguageModelV3 {
  return {
    specificationVersion: 'v3',
    provider: 'bench',
    modelId: 'instant',
    supportedUrls: {},
    doGenerate: async (request) => ({ ...answer(request), warnings: [] }),
    doStream: async (request) => ({ stream: streamOf(answer(request)) }),
  };
}

const SUMMARY = 'The job goes on as before. '.repeat(20);
export const STOP: LanguageModelV3FinishReason = { unified: 'stop', raw: 'stop' };

function isSummary(prompt: LanguageModelV3Prompt): boolean {
  const last = prompt.at(-1);
  const [part] = last?.role === 'user' ? last.content : [];
  return part?.type === 'text' && part.text === SUMMARY_REQUEST;
}

export function usageOf({ tokens, cached }: Counted = { tokens: 0, cached: 0 }): LanguageModelV3Usage {
  return {
    inputTokens: { total: tokens, noCache: tokens - cached, cacheRead: cached, cacheWrite: undefined },
    outputTokens: { total: 280, text: undefined, reasoning: undefined },
  };
}

export interface Answer {
  content: LanguageModelV3Content[];
  finishReason: LanguageModelV3FinishReason;
  usage: LanguageModelV3Usage;
}

/** The job in the first message. A summary repeats that message word for word. */
function jobOf(prompt: LanguageModelV3Prompt): Job {
  for (const { role, content } of prompt) {
    if (role !== 'user') continue;
    for (const part of content) {
      const text = part.type === 'text' ? /^bench .*/m.exec(part.text)?.[0] : undefined;
      if (text !== undefined) return readJob(text);
    }
  }
  throw new Error('the prompt has no job');
}

/**
 * The number of the last reply, which its text begins with. Counting the replies would take longer in a longer session.
 */
function lastReply(prompt: LanguageModelV3Prompt): number {
  const last = prompt.findLast(({ role }) => role === 'assistant');
  const [part] = last?.role === 'assistant' ? last.content : [];
  return part?.type === 'text' ? Number(/^Reply (\d+)/.exec(part.text)?.[1]) : 0;
}

function answerOf(job: Job, turn: number, counted: Counted): Answer {
  const last = turn > job.turns;
  const input = JSON.stringify(callArgs(turn));
  const call: LanguageModelV3Content = {
    type: 'tool-call',
    toolCallId: `provider_${turn}`,
    toolName: job.tool,
    input,
  };
  return {
    content: [{ type: 'text', text: replyText(turn) }, ...(last ? [] : [call])],
    finishReason: last ? STOP : { unified: 'tool-calls', raw: 'tool_calls' },
    usage: usageOf(counted),
  };
}

function streamOf({ content, finishReason, usage }: Answer): ReadableStream<LanguageModelV3StreamPart> {
  return new ReadableStream({
    start: (controller) => {
      controller.enqueue({ type: 'stream-start', warnings: [] });
      for (const part of content) {
        if (part.type === 'text') {
          controller.enqueue({ type: 'text-start', id: '0' });
          controller.enqueue({ type: 'text-delta', id: '0', delta: part.text });
          controller.enqueue({ type: 'text-end', id: '0' });
        } else if (part.type === 'tool-call') controller.enqueue(part);
      }
      controller.enqueue({ type: 'finish', finishReason, usage });
      controller.close();
    },
  });
}
