/** Counters and histograms. A meter provider must be registered before the worker is created. */
import type * as Otel from '@opentelemetry/api';
import { otel, SCOPE } from './otel.ts';

/** The instruments of a process. */
export interface Instruments {
  operations: Otel.Histogram;
  tokens: Otel.Histogram;
  turns: Otel.Counter;
  turnSeconds: Otel.Histogram;
  cost: Otel.Counter;
  waits: Otel.Histogram;
  lost: Otel.Counter;
  recovery: Otel.Histogram;
  ended: Otel.Counter;
}

/** The bounds of OpenTelemetry's conventions for model calls, in seconds. */
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/** Bounds of waits for people, in seconds. */
const LONG_SECONDS = [1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800];
const TOKENS = [
  1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864,
];

let made: Instruments | null | undefined;

/** The instruments, or `null` without the API. */
export function instruments(): Instruments | null {
  if (made === undefined) {
    const meter = otel()?.metrics.getMeter(SCOPE);
    made = meter === undefined ? null : instrumentsOf(meter);
  }
  return made;
}

function instrumentsOf(meter: Otel.Meter): Instruments {
  const seconds = (name: string, description: string, bounds: number[] = SECONDS): Otel.Histogram =>
    meter.createHistogram(name, { unit: 's', description, advice: { explicitBucketBoundaries: bounds } });
  return {
    operations: seconds('gen_ai.client.operation.duration', 'Model requests and tool calls'),
    tokens: meter.createHistogram('gen_ai.client.token.usage', {
      unit: '{token}',
      description: 'Tokens of one model request',
      advice: { explicitBucketBoundaries: TOKENS },
    }),
    turns: meter.createCounter('perdure.turns', { unit: '{turn}', description: 'Turns that are complete' }),
    turnSeconds: seconds('gen_ai.invoke_agent.duration', 'Turns with their waits', LONG_SECONDS),
    cost: meter.createCounter('perdure.cost', {
      unit: 'USD',
      description: 'Charged to budgets, with replies that were lost',
    }),
    waits: seconds('perdure.wait.duration', 'Waits for people, budgets and providers', LONG_SECONDS),
    lost: meter.createCounter('perdure.calls.lost', {
      unit: '{call}',
      description: 'Activities whose worker was lost',
    }),
    recovery: seconds(
      'perdure.recovery.duration',
      'From the loss of a worker until its call went on or its outcome was known',
    ),
    ended: meter.createCounter('perdure.sessions.ended', {
      unit: '{session}',
      description: 'Sessions that ended',
    }),
  };
}

/**
 * Reports how many sessions are in each phase, each time that metrics are collected.
 *
 * @param count - asks the server for the sessions of the namespace by phase
 * @returns a function that ends the reports
 */
export function observeSessions(
  namespace: string,
  count: () => Promise<ReadonlyMap<string, number>>,
): () => void {
  const gauge = otel()?.metrics.getMeter(SCOPE).createObservableGauge('perdure.sessions', {
    unit: '{session}',
    description: 'Open sessions of the namespace by phase',
  });
  const report = async (result: Otel.ObservableResult): Promise<void> => {
    // A server that does not answer leaves a gap in the series.
    const phases = await count().catch(() => new Map<string, number>());
    for (const [phase, sessions] of phases)
      result.observe(sessions, { 'perdure.phase': phase, 'perdure.namespace': namespace });
  };
  gauge?.addCallback(report);
  return () => gauge?.removeCallback(report);
}
