/** A model whose tokens are the time at which it sends them. */
import type { LanguageModelV3, LanguageModelV3StreamPart } from '@ai-sdk/provider';

export const TOKENS = 60;
const PAUSE_MS = 50;

/** Milliseconds since 1970, with fractions: processes of one machine agree on it. */
export function clock(): number {
  return performance.timeOrigin + performance.now();
}

export function clockModel(): LanguageModelV3 {
  const stream = (): ReadableStream<LanguageModelV3StreamPart> =>
    new ReadableStream({
      start: async (controller) => {
        controller.enqueue({ type: 'stream-start', warnings: [] });
        controller.enqueue({ type: 'text-start', id: '0' });
        for (let n = 0; n < TOKENS; n++) {
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
          controller.enqueue({ type: 'text-delta', id: '0', delta: `${clock()} ` });
        }
        controller.enqueue({ type: 'text-end', id: '0' });
        const inputTokens = { total: 100, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
        const outputTokens = { total: TOKENS, text: undefined, reasoning: undefined };
        const usage = { inputTokens, outputTokens };
        controller.enqueue({ type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage });
        controller.close();
      },
    });
  return {
    specificationVersion: 'v3',
    provider: 'bench',
    modelId: 'clock',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('it streams only')),
    doStream: async () => ({ stream: stream() }),
  };
}
