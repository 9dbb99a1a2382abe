/**
 * The OpenTelemetry API, when it is installed. It does nothing unless the process has registered an SDK, so Perdure has
 * no switch of its own.
 */
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { setTimeout } from 'node:timers/promises';
import type * as Otel from '@opentelemetry/api';

/** The name of the tracer and the meter. */
export const SCOPE = 'perdure';

let loaded: typeof Otel | null | undefined;

/** The API, or `null` when it is not installed. */
export function otel(): typeof Otel | null {
  if (loaded === undefined) {
    try {
      loaded = createRequire(import.meta.url)('@opentelemetry/api') as typeof Otel;
    } catch {
      loaded = null;
    }
  }
  return loaded;
}

/** A turn of a session: one trace, whichever workers take part in it. */
export interface Turn {
  readonly namespace: string;
  readonly sessionId: string;
  readonly turn: number;
}

/** The span of a turn as a parent. Its ids derive from the session and the turn, so that all workers know them. */
export function turnContext({ namespace, sessionId, turn }: Turn): Otel.SpanContext {
  const digest = createHash('sha256')
    .update(JSON.stringify([namespace, sessionId, turn]))
    .digest('hex');
  return {
    traceId: digest.slice(0, 32),
    spanId: digest.slice(32, 48),
    isRemote: true,
    // A parent-based sampler takes all turns. A sampler by trace id decides alike on each worker.
    traceFlags: 1,
  };
}

/** The id of a span, derived from its key: a workflow task that is repeated reports the span again with the same id. */
export function spanIdOf({ traceId }: Otel.SpanContext, key: string): string {
  return createHash('sha256').update(`${traceId} ${key}`).digest('hex').slice(0, 16);
}

/** The session's id, the agent and the turn, as attributes of each span. */
export function turnAttributes({ sessionId, turn }: Turn, agent: string): Otel.Attributes {
  return {
    'gen_ai.conversation.id': sessionId,
    'session.id': sessionId,
    'gen_ai.agent.name': agent,
    'perdure.turn': turn,
  };
}

/** Whether prompts, replies, arguments and results may be in spans. */
export function capturesContent(): boolean {
  const choice = process.env['OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT'] ?? '';
  return /^(true|span_only|span_and_event)$/i.test(choice);
}

/** How long a worker that ends waits for its exporters, in milliseconds. */
const FLUSH_MS = 5_000;

/** Exports what the SDK still holds. Its providers have `forceFlush`, which the API does not name. */
export async function flush(): Promise<void> {
  const api = otel();
  if (api === null) return;
  const tracing: Otel.TracerProvider & Provider = api.trace.getTracerProvider();
  const measuring: Otel.MeterProvider & Provider = api.metrics.getMeterProvider();
  const flushed = [tracing.getDelegate?.() ?? tracing, measuring].map(async (provider) =>
    provider.forceFlush?.(),
  );
  await Promise.race([Promise.allSettled(flushed), setTimeout(FLUSH_MS, undefined, { ref: false })]);
}

interface Provider {
  forceFlush?(): Promise<void>;
  /** The API's own provider delegates to the one that was registered. */
  getDelegate?(): Provider;
}
