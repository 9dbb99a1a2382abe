/** How a verb fails: its message, the next command, and the exit code. */
import { type ErrorCode, isPerdureError, messageOf, type PerdureError } from '../contract/errors.ts';
import type { NextStep } from '../contract/next-step.ts';
import { command, commandsFor } from '../session/commands.ts';
import { clean, type Terminal } from './terminal.ts';

/** Exit codes. */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  notFound: 3,
  refused: 4,
  unreachable: 5,
  interrupted: 130,
} as const;

const EXIT_OF: Partial<Record<ErrorCode, number>> = {
  INVALID_ARGUMENT: EXIT.usage,
  NOT_JSON: EXIT.usage,
  TOO_LARGE: EXIT.usage,
  SESSION_NOT_FOUND: EXIT.notFound,
  POOL_NOT_FOUND: EXIT.notFound,
  UNKNOWN_AGENT: EXIT.notFound,
  UNKNOWN_CALL: EXIT.notFound,
  CHECKPOINT_NOT_FOUND: EXIT.notFound,
  VALUE_NOT_FOUND: EXIT.notFound,
  SESSION_EXISTS: EXIT.refused,
  SESSION_CLOSED: EXIT.refused,
  SESSION_BUSY: EXIT.refused,
  SESSION_FULL: EXIT.refused,
  CALL_NOT_PENDING: EXIT.refused,
  MESSAGE_NOT_QUEUED: EXIT.refused,
  DIGEST_MISMATCH: EXIT.refused,
  DISPATCH_MISMATCH: EXIT.refused,
  INVALID_TOOL_INPUT: EXIT.refused,
  FENCED: EXIT.refused,
  CONFLICT: EXIT.refused,
  ENCRYPTED: EXIT.refused,
  UNKNOWN_KEY: EXIT.refused,
  SERVER_UNAVAILABLE: EXIT.unreachable,
  NO_WORKER: EXIT.unreachable,
  WORKER_BUSY: EXIT.unreachable,
  WORKER_LOST: EXIT.unreachable,
  REPLAY_SLOW: EXIT.unreachable,
  TASK_FAILING: EXIT.unreachable,
  FLOODED: EXIT.unreachable,
};

export interface FailureContext {
  /** Empty when no verb was recognised. */
  verb: string;
  sessionId: string | null;
  /** The command that safely repeats an unanswered request. */
  repeat: string | null;
}

/** Reports an error on standard error, and returns the exit code. */
export function reportFailure(error: unknown, terminal: Terminal, context: FailureContext): number {
  const known = isPerdureError(error);
  const code = known ? error.code : 'UNEXPECTED';
  const message = messageOf(error);
  const exit = known ? (EXIT_OF[error.code] ?? EXIT.failure) : EXIT.failure;
  const repeat = exit === EXIT.unreachable ? context.repeat : null;
  const [next = '', ...others] = (known ? namedBy(error) : null) ?? [nextCommand(code, context)];
  if (terminal.json) {
    const details = known ? error.details : {};
    terminal.error(JSON.stringify({ error: { code, message, details, next } }));
  } else {
    terminal.error(`${terminal.styleError('red', 'error')} ${code}: ${clean(message)}`);
    terminal.error(repeat === null ? `  next: ${clean(next)}` : `  again: ${clean(repeat)}`);
    for (const other of others) terminal.error(`    or: ${clean(other)}`);
  }
  if (!known && process.env['PERDURE_DEBUG'] && error instanceof Error) terminal.error(error.stack ?? '');
  return exit;
}

/** The commands that an error names. */
function namedBy({ details }: PerdureError): string[] | null {
  const { next, commands } = details as { next?: NextStep; commands?: string[] };
  return commands ?? (next === undefined ? null : commandsFor(next));
}

function nextCommand(code: string, { verb, sessionId, repeat }: FailureContext): string {
  const help = verb === '' ? 'perdure --help' : `perdure ${verb} --help`;
  switch (code) {
    case 'INVALID_ARGUMENT':
    case 'NOT_JSON':
    case 'TOO_LARGE':
      return help;
    case 'SESSION_NOT_FOUND':
      return 'perdure ls';
    case 'SESSION_CLOSED':
    case 'SESSION_EXISTS':
    case 'SESSION_BUSY':
    case 'SESSION_FULL':
    case 'UNKNOWN_CALL':
    case 'CALL_NOT_PENDING':
    case 'DIGEST_MISMATCH':
    case 'DISPATCH_MISMATCH':
    case 'INVALID_TOOL_INPUT':
    case 'CONFLICT':
      return sessionId === null ? 'perdure ls' : command('show', sessionId);
    case 'MESSAGE_NOT_QUEUED':
      return sessionId === null ? 'perdure ls' : command('queue', sessionId);
    case 'CHECKPOINT_NOT_FOUND':
      return sessionId === null ? 'perdure ls' : command('checkpoints', 'ls', sessionId);
    case 'UNKNOWN_AGENT':
    case 'NO_WORKER':
    case 'WORKER_BUSY':
      return 'perdure worker';
    case 'SERVER_UNAVAILABLE':
      return repeat ?? 'perdure doctor';
    case 'INVALID_DEFINITION':
      return `perdure ${verb}`;
    case 'ENCRYPTED':
      return `perdure --data-converter <module> ${verb}`;
    default:
      return 'perdure doctor';
  }
}
