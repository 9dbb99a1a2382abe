import { metrics } from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector } from '@opentelemetry/resources';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

// The exporters read OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS.
const resource = detectResources({ detectors: [envDetector] });
const exporter = new OTLPTraceExporter();
export const tracing: NodeTracerProvider = new NodeTracerProvider({
  resource,
  spanProcessors: [new BatchSpanProcessor(exporter)],
});
tracing.register();
const reader = new PeriodicExportingMetricReader({
  exporter: new OTLPMetricExporter(),
  exportIntervalMillis: Number(process.env['OTEL_METRIC_EXPORT_INTERVAL'] ?? 60_000),
});
metrics.setGlobalMeterProvider(new MeterProvider({ resource, readers: [reader] }));
