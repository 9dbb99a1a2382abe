/** Spans of what a worker does now: one for each attempt. */
import type * as Otel from '@opentelemetry/api';
import { otel, SCOPE, type Turn, turnAttributes, turnContext } from './otel.ts';

/** What a span is about. */
export interface Operation {
  readonly turn: Turn;
  readonly agent: string;
  readonly name: string;
  readonly client?: boolean;
  readonly attributes: Otel.Attributes;
}

/** The span of an operation, for the operation to add to. */
export interface OperationSpan {
  /** Whether anybody records the span. */
  readonly recording: boolean;
  set(attributes: Otel.Attributes): void;
  /** Marks it as failed. `type` is a word of low cardinality. */
  fail(type: string, message?: string): void;
}

const NOT_RECORDING: OperationSpan = { recording: false, set: () => undefined, fail: () => undefined };

/** Runs an operation in a span. Spans that the operation starts are its children. */
export async function inSpan<T>(operation: Operation, run: (span: OperationSpan) => Promise<T>): Promise<T> {
  const api = otel();
  if (api === null) return run(NOT_RECORDING);
  const { context, trace, SpanKind, SpanStatusCode } = api;
  const { turn, agent, name, client = false, attributes } = operation;
  const parent = trace.setSpanContext(context.active(), turnContext(turn));
  const options = {
    kind: client ? SpanKind.CLIENT : SpanKind.INTERNAL,
    attributes: { ...turnAttributes(turn, agent), ...attributes },
  };
  const span = trace.getTracer(SCOPE).startSpan(name, options, parent);
  const own = trace.setSpan(parent, span);
  // Also a span that is not sampled is the parent of those inside, so that they are dropped with it.
  if (!span.isRecording()) return context.with(own, () => run(NOT_RECORDING));
  const handle: OperationSpan = {
    recording: true,
    set: (more) => void span.setAttributes(more),
    fail: (type, message = type) => {
      span.setAttribute('error.type', type);
      span.setStatus({ code: SpanStatusCode.ERROR, message });
    },
  };
  try {
    return await context.with(own, () => run(handle));
  } catch (error) {
    // Only the error's name is recorded: its message may quote a tool or a model.
    handle.fail(error instanceof Error ? error.name : 'Error');
    throw error;
  } finally {
    span.end();
  }
}
