/** A receiver of OTLP over HTTP, in JSON. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

type Value = { stringValue?: string; intValue?: number | string; doubleValue?: number; boolValue?: boolean };
type Attributes = { key: string; value: Value }[];

interface WireSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Attributes;
  status: { code: number; message?: string };
}

interface WirePoint {
  attributes: Attributes;
  asInt?: string | number;
  asDouble?: number;
  count?: string | number;
  sum?: number;
}

interface WireData {
  resource: { attributes: Attributes };
  scopeSpans?: { spans: WireSpan[] }[];
  scopeMetrics?: {
    metrics: { name: string; [kind: string]: string | { dataPoints: WirePoint[] } }[];
  }[];
}

/** A span as a test reads it. */
export interface Span {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  /** Milliseconds. */
  start: number;
  end: number;
  attributes: Record<string, unknown>;
  failed: boolean;
  resource: Record<string, unknown>;
}

/** The last value of one series of a metric. Of a histogram: its sum. */
export interface Point {
  name: string;
  value: number;
  attributes: Record<string, unknown>;
  resource: Record<string, unknown>;
}

/** What the receiver has got. */
export interface OtlpReceiver {
  readonly url: string;
  readonly spans: Span[];
  /** All points, the newest last. */
  readonly points: Point[];
  /** All bodies, as they came. */
  readonly bodies: string[];
}

/** Starts a receiver for the running test. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: Span[] = [];
  const points: Point[] = [];
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      bodies.push(body);
      const { resourceSpans = [], resourceMetrics = [] } = JSON.parse(body) as Record<string, WireData[]>;
      spans.push(...resourceSpans.flatMap(readSpans));
      points.push(...resourceMetrics.flatMap(readPoints));
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, spans, points, bodies };
}

function readSpans({ resource, scopeSpans = [] }: WireData): Span[] {
  return scopeSpans
    .flatMap(({ spans }) => spans)
    .map((span) => ({
      traceId: span.traceId,
      spanId: span.spanId,
      parentSpanId: span.parentSpanId,
      name: span.name,
      start: Number(span.startTimeUnixNano) / 1e6,
      end: Number(span.endTimeUnixNano) / 1e6,
      attributes: read(span.attributes),
      failed: span.status.code === 2,
      resource: read(resource.attributes),
    }));
}

function readPoints({ resource, scopeMetrics = [] }: WireData): Point[] {
  return scopeMetrics.flatMap(({ metrics }) =>
    metrics.flatMap(({ name, ...kinds }) =>
      Object.values(kinds)
        .filter((data) => typeof data === 'object')
        .flatMap(({ dataPoints }) => dataPoints)
        .map((point) => ({
          name,
          value: Number(point.sum ?? point.asInt ?? point.asDouble ?? 0),
          attributes: read(point.attributes),
          resource: read(resource.attributes),
        })),
    ),
  );
}

function read(attributes: Attributes): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const [content] =
        Object.entries(value)[0]?.[0] === 'intValue' ? [Number(value.intValue)] : Object.values(value);
      return [key, content];
    }),
  );
}
