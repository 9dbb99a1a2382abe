import { PerdureError } from '../contract/errors.ts';
import { UNKNOWN_KEY } from '../contract/failure.ts';

/** The error when a payload cannot be decrypted with the keys of this process. */
export class UnknownKeyError extends PerdureError {
  /** The SDK takes the type of an activity's failure from this name. */
  static override readonly name: string = UNKNOWN_KEY;

  constructor(keyId: string, problem: string, cause?: unknown) {
    super(
      'UNKNOWN_KEY',
      `${problem}. Nothing is lost: correct the keys of the codec, and restart the process`,
      {
        details: { keyId },
        cause,
      },
    );
  }
}
