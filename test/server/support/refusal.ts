import { isPerdureError, type PerdureError } from '../../../src/index.ts';

/** What a call is refused with; fails when it is not refused, or with anything but a PerdureError. */
export async function refusal(call: Promise<unknown>): Promise<PerdureError> {
  let value: unknown;
  try {
    value = await call;
  } catch (error) {
    if (isPerdureError(error)) return error;
    throw error;
  }
  throw new Error(`not refused: ${JSON.stringify(value)}`);
}
