import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';

/** Keeps the SDK's log out of a measurement's output. Only errors are shown. */
export function quietRuntime(): void {
  const filter = makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' });
  Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging: { filter } } });
}
