import type { ErrorCode } from '../contract/errors.ts';

/** Why an input was refused. A refused input changes nothing. */
export interface Refusal {
  code: ErrorCode;
  message: string;
  /** The same for programs. */
  details?: Readonly<Record<string, unknown>>;
}
