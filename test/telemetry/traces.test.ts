/** What a real OpenTelemetry SDK exports from real worker processes, over a death in the middle of a turn. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { decide } from '../support/decide.ts';
import { type OtlpReceiver, type Span, startOtlpReceiver } from '../support/otlp-receiver.ts';
import { calls, openWorld, type World } from '../support/world.ts';

const LONG = { timeout: 20_000 };
const MODULE = new URL('../support/traced-agents.ts', import.meta.url);
const script = [calls(['order', { id: '1001' }]), calls('refundAsked'), { text: 'All is refunded.' }];

function environment({ url }: OtlpReceiver, name: string, more: Record<string, string> = {}) {
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_RESOURCE_ATTRIBUTES: `worker=${name}`,
    OTEL_BSP_SCHEDULE_DELAY: '50',
    OTEL_METRIC_EXPORT_INTERVAL: '300',
    OTEL_METRIC_EXPORT_TIMEOUT: '300',
    ...more,
  };
}

/** A session whose approved refund loses its worker before the request, and is made by the next one. */
async function story(receiver: OtlpReceiver, more?: Record<string, string>) {
  const world: World = await openWorld(script, { module: MODULE });
  const first = await world.startWorkerProcess({
    breakAt: ['request'],
    env: environment(receiver, 'first', more),
  });
  const session = await world.begin('priced');
  await first.reached('request');
  first.release('request');
  await world.until(session, 'approval');
  await decide(session, 'call_2_0', { decision: 'approve' }, { by: 'ada' });
  await first.reached('request');
  // What it has measured so far is out; what it is doing now dies with it.
  await expect.poll(() => receiver.spans.some(({ name }) => name.startsWith('approval')), LONG).toBe(true);
  await expect
    .poll(() => receiver.points.some(({ name }) => name === 'perdure.wait.duration'), LONG)
    .toBe(true);
  await first.crash();
  const second = await world.startWorkerProcess({ env: environment(receiver, 'second', more) });
  await world.until(session, 'idle');
  return { world, session, second };
}

function matches(given: Record<string, unknown>, wanted: object): boolean {
  return Object.entries(wanted).every(([key, value]) => given[key] === value);
}

/** The spans of a turn: what happened, in the order of its ends, and the turn itself. */
function turnOf(spans: readonly Span[], sessionId: string, turn: number) {
  const digest = createHash('sha256')
    .update(JSON.stringify(['default', sessionId, turn]))
    .digest('hex');
  const own = spans.filter(({ traceId }) => traceId === digest.slice(0, 32));
  const root = own.find(({ parentSpanId }) => parentSpanId === undefined);
  const steps = own.filter((span) => span !== root).sort((a, b) => a.end - b.end);
  expect(root).toMatchObject({ name: 'invoke_agent priced', spanId: digest.slice(32, 48) });
  for (const step of steps) {
    expect(step.parentSpanId).toBe(root?.spanId);
    expect(step.attributes).toMatchObject({ 'gen_ai.conversation.id': sessionId, 'perdure.turn': turn });
  }
  return {
    root,
    steps: steps.map(
      ({ name, failed, resource }) => `${String(resource['worker'])}: ${name}${failed ? ' failed' : ''}`,
    ),
    own,
  };
}

test('a turn is one trace over the death of its worker: the lost call, the approval before it, the check and the second dispatch', async () => {
  const receiver = await startOtlpReceiver();
  const { session, second } = await story(receiver);
  // A worker that is stopped exports what it still holds.
  await second.stop();
  const { spans, points, bodies } = receiver;
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(3);

  const one = turnOf(spans, session.id, 1);
  expect(one.steps).toEqual(['first: chat scripted', 'first: execute_tool order']);
  const two = turnOf(spans, session.id, 2);
  expect(two.steps).toEqual([
    'first: chat scripted',
    'first: approval refundAsked',
    'second: execute_tool refundAsked failed',
    'second: verify refundAsked',
    'second: execute_tool refundAsked',
  ]);
  const three = turnOf(spans, session.id, 3);
  expect(three.steps).toEqual(['second: chat scripted']);

  const named = (name: string): (Span | undefined)[] => two.own.filter((span) => span.name.startsWith(name));
  expect(named('approval')).toMatchObject([{ attributes: { 'perdure.outcome': 'approve' } }]);
  expect(named('verify')).toMatchObject([{ attributes: { 'perdure.outcome': 'absent' } }]);
  expect(named('execute_tool')).toMatchObject([
    { attributes: { 'error.type': 'worker_lost', 'perdure.dispatch': 1, 'gen_ai.tool.call.id': 'call_2_0' } },
    { attributes: { 'perdure.outcome': 'output', 'perdure.dispatch': 2, 'perdure.effect': 'mutate' } },
  ]);
  expect(named('chat')).toMatchObject([
    {
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'scripted',
        'gen_ai.usage.input_tokens': expect.any(Number),
      },
    },
  ]);
  // The turn lasts from its request to its last result.
  for (const { start, end } of two.own.slice(1)) {
    expect(start).toBeGreaterThanOrEqual((two.root?.start ?? 0) - 1_000);
    expect(end).toBeLessThanOrEqual((two.root?.end ?? 0) + 1_000);
  }
  expect(two.root?.attributes['perdure.cost.usd']).toBeGreaterThan(0);

  const measured = (name: string, attributes: object = {}): number | undefined =>
    points.filter((point) => point.name === name).findLast((point) => matches(point.attributes, attributes))
      ?.value;
  expect(measured('perdure.calls.lost', { 'perdure.activity': 'tool' })).toBe(1);
  expect(measured('perdure.recovery.duration')).toBeGreaterThan(0);
  expect(measured('perdure.sessions', { 'perdure.phase': 'active' })).toBeGreaterThan(0);
  expect(measured('perdure.cost')).toBeGreaterThan(0);
  expect(measured('gen_ai.client.token.usage', { 'gen_ai.token.type': 'input' })).toBeGreaterThan(0);
  const turns = ['first', 'second'].map(
    (worker) =>
      points.findLast(({ name, resource }) => name === 'perdure.turns' && matches(resource, { worker }))
        ?.value,
  );
  expect(turns).toEqual([1, 2]);

  // Nothing of what was said, asked or answered.
  const all = bodies.join('\n');
  for (const content of ['Please.', 'All is refunded.', 'ch_1001', 'Help with refunds', 'broken']) {
    expect(all).not.toContain(content);
  }
});

test('content is in spans when it is asked for', async () => {
  const receiver = await startOtlpReceiver();
  const world = await openWorld(script, { module: MODULE });
  const asked = { OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: 'true' };
  const worker = await world.startWorkerProcess({ env: environment(receiver, 'only', asked) });
  const session = await world.begin('priced');
  await world.until(session, 'approval');
  await worker.stop();
  const found = (name: string): Record<string, unknown> =>
    receiver.spans.find((span) => span.name === name)?.attributes ?? {};
  expect(found('chat scripted')).toMatchObject({
    'gen_ai.system_instructions': expect.stringContaining('Help with refunds'),
    'gen_ai.input.messages': expect.stringContaining('Please.'),
    'gen_ai.output.messages': expect.stringContaining('"name":"order"'),
  });
  expect(found('execute_tool order')).toMatchObject({
    'gen_ai.tool.call.arguments': '{"id":"1001"}',
    'gen_ai.tool.call.result': expect.stringContaining('1001'),
  });
});
