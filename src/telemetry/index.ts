export { instruments, observeSessions } from './metrics.ts';
export { capturesContent, flush, type Turn } from './otel.ts';
export { reportSession } from './session-events.ts';
export { inSpan, type OperationSpan } from './span.ts';
