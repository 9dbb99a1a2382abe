/**
 * Spans and metrics of what only the session knows: turns, waits and lost calls.
 *
 * A workflow task that is repeated reports its events again. So the ids of their spans derive from what they are about,
 * and a backend that gets a span twice keeps one.
 */
import type * as Otel from '@opentelemetry/api';
import { defined } from '../contract/json.ts';
import { NANO_PER_USD } from '../contract/state.ts';
import type { SessionEvent, SessionEvents } from '../contract/telemetry.ts';
import { instruments } from './metrics.ts';
import { otel, SCOPE, spanIdOf, type Turn, turnAttributes, turnContext } from './otel.ts';

interface PastSpan {
  turn: Turn;
  agent: string;
  name: string;
  /** What the span's id derives from. Absent: it is the turn's own span. */
  key?: string;
  start: number;
  end: number;
  attributes: Otel.Attributes;
  error?: { type: string; message: string };
}

/** Reports the events of one step of a session. */
export function reportSession(
  { namespace, workflowId: sessionId }: { namespace: string; workflowId: string },
  { agent, events }: SessionEvents,
): void {
  const api = otel();
  if (api === null) return;
  for (const event of events) {
    measure(agent, event);
    const span = spanOf(event);
    if (span !== null) writeSpan(api, { turn: { namespace, sessionId, turn: span.no }, agent, ...span });
  }
}

function spanOf(
  event: SessionEvent,
): (Pick<PastSpan, 'name' | 'key' | 'start' | 'end' | 'attributes' | 'error'> & { no: number }) | null {
  switch (event.kind) {
    case 'turn': {
      const { turn: no, start, end, calls, inputTokens, outputTokens, nanoUsd } = event;
      const attributes = {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.usage.input_tokens': inputTokens,
        'gen_ai.usage.output_tokens': outputTokens,
        'perdure.cost.usd': nanoUsd / NANO_PER_USD,
        'perdure.calls': calls,
      };
      return { no, name: 'invoke_agent', start, end, attributes };
    }
    case 'wait': {
      const { turn: no, on, start, end, outcome, reason, callId, tool } = event;
      const attributes = {
        'perdure.wait': on,
        'perdure.outcome': outcome,
        ...defined({
          'perdure.wait.reason': reason,
          'gen_ai.tool.name': tool,
          'gen_ai.tool.call.id': callId,
        }),
      };
      const key = `${on} ${callId ?? ''} ${start}`;
      return { no, name: `${on} ${tool ?? reason ?? ''}`.trim(), key, start, end, attributes };
    }
    case 'lost': {
      const { turn: no, activity, start, end, message, callId, tool, dispatchNo } = event;
      const operation = OPERATION[activity] ?? activity;
      const attributes = {
        'gen_ai.operation.name': operation,
        'perdure.lost': true,
        ...defined({
          'gen_ai.tool.name': tool,
          'gen_ai.tool.call.id': callId,
          'perdure.dispatch': dispatchNo,
        }),
      };
      const key = `lost ${activity} ${callId ?? ''} ${dispatchNo ?? 0} ${end}`;
      const error = { type: 'worker_lost', message };
      return { no, name: `${operation} ${tool ?? ''}`.trim(), key, start, end, attributes, error };
    }
    case 'recovered':
    case 'spent':
    case 'ended':
      return null;
    default:
      return event satisfies never;
  }
}

/** The conventions' words for activities. */
const OPERATION: Readonly<Record<string, string>> = {
  model: 'chat',
  tool: 'execute_tool',
  reads: 'execute_tool',
};

function measure(agent: string, event: SessionEvent): void {
  const to = instruments();
  if (to === null) return;
  const attributes: Otel.Attributes = { 'gen_ai.agent.name': agent };
  switch (event.kind) {
    case 'turn':
      to.turns.add(1, attributes);
      to.turnSeconds.record(seconds(event), { ...attributes, 'gen_ai.operation.name': 'invoke_agent' });
      return;
    case 'wait': {
      const why = { 'perdure.wait': event.on, ...defined({ 'perdure.wait.reason': event.reason }) };
      to.waits.record(seconds(event), { ...attributes, ...why, 'perdure.outcome': event.outcome });
      return;
    }
    case 'lost':
      to.lost.add(1, { ...attributes, 'perdure.activity': event.activity });
      return;
    case 'recovered':
      to.recovery.record(seconds(event), attributes);
      return;
    case 'spent':
      to.cost.add(event.nanoUsd / NANO_PER_USD, attributes);
      return;
    case 'ended':
      to.ended.add(1, { ...attributes, 'perdure.status': event.status });
      return;
    default:
      event satisfies never;
  }
}

/** Clocks of workers differ, so an end may be before its start. */
function seconds({ start, end }: { start: number; end: number }): number {
  return Math.max(0, end - start) / 1_000;
}

/**
 * Writes a span that has ended. The API makes random ids, so the derived id is put where exporters read it: in
 * `spanContext()` and `parentSpanContext`, which are public. An SDK of another kind keeps its own id.
 */
function writeSpan(api: typeof Otel, { turn, agent, name, key, start, end, ...rest }: PastSpan): void {
  const root = turnContext(turn);
  const parent = api.trace.setSpanContext(api.ROOT_CONTEXT, root);
  const attributes = { ...turnAttributes(turn, agent), ...rest.attributes };
  const span = api.trace
    .getTracer(SCOPE)
    .startSpan(key === undefined ? `${name} ${agent}` : name, { startTime: start, attributes }, parent);
  if (!span.isRecording()) return;
  const { traceFlags, traceState } = span.spanContext();
  const own: Otel.SpanContext = {
    traceId: root.traceId,
    spanId: key === undefined ? root.spanId : spanIdOf(root, key),
    traceFlags,
    ...defined({ traceState }),
  };
  span.spanContext = () => own;
  if (key === undefined) Object.assign(span, { parentSpanContext: undefined });
  if (rest.error !== undefined) {
    span.setAttribute('error.type', rest.error.type);
    span.setStatus({ code: api.SpanStatusCode.ERROR, message: rest.error.message });
  }
  span.end(Math.max(start, end));
}
