/** What a tool's own spans belong to when the sampler drops the span of the call. */
import { context, trace } from '@opentelemetry/api';
import { NodeTracerProvider, SamplingDecision } from '@opentelemetry/sdk-trace-node';
import { expect, onTestFinished, test } from 'vitest';
import { inSpan } from '../../src/telemetry/index.ts';

test('a span that a tool starts belongs to the trace of the turn, also when the call is not sampled', async () => {
  const provider = new NodeTracerProvider({
    sampler: {
      shouldSample: (_context, _trace, name) => ({
        decision:
          name === 'execute_tool pay' ? SamplingDecision.NOT_RECORD : SamplingDecision.RECORD_AND_SAMPLED,
      }),
      toString: () => 'drops calls',
    },
  });
  provider.register();
  onTestFinished(async () => {
    await provider.shutdown();
    trace.disable();
    context.disable();
  });
  const traceOf = (name: string): Promise<string> =>
    inSpan(
      { turn: { namespace: 'default', sessionId: 's', turn: 1 }, agent: 'a', name, attributes: {} },
      async () => {
        await Promise.resolve();
        return trace.getTracer('http').startSpan('POST').spanContext().traceId;
      },
    );
  expect(await traceOf('execute_tool pay')).toBe(await traceOf('execute_tool look'));
});
