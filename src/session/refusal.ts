import type { ErrorCode } from '../contract/errors.ts';

/** Why an input was refused. Nothing has changed. */
export interface Refusal {
  code: ErrorCode;
  message: string;
  /** The same for programs. */
  details?: Readonly<Record<string, unknown>>;
}
