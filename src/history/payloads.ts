/** Payloads of a history, decoded with the client's own converter and codecs. */
import type { LoadedDataConverter } from '@temporalio/common';
import {
  decodeFromPayloadsAtIndex,
  decodeOptionalFailureToOptionalError,
} from '@temporalio/common/lib/internal-non-workflow/index.js';
import type { temporal } from '@temporalio/proto';
import type { ActivityFailureInfo } from '../contract/activities.ts';
import { activityFailureInfo } from '../contract/failure.ts';
import { UNREADABLE } from '../contract/inputs.ts';

type Payloads = temporal.api.common.v1.IPayloads | null | undefined;
type Failure = temporal.api.failure.v1.IFailure | null | undefined;

/** Reads values out of a history's payloads. */
export class PayloadReader {
  readonly #converter: LoadedDataConverter;

  constructor(converter: LoadedDataConverter) {
    this.#converter = converter;
  }

  /** The first value, or `undefined`. */
  async first(payloads: Payloads): Promise<unknown> {
    const list = payloads?.payloads;
    if (list === null || list === undefined || list.length === 0) return undefined;
    return decodeFromPayloadsAtIndex<unknown>(this.#converter, 0, list);
  }

  /** The first value, or what the workflow puts in its place when it cannot be decoded. */
  async firstOrUnreadable(payloads: Payloads): Promise<unknown> {
    try {
      return await this.first(payloads);
    } catch {
      return UNREADABLE;
    }
  }

  /** A failure in the words of the live session. */
  async failure(failure: Failure): Promise<ActivityFailureInfo> {
    return activityFailureInfo(await decodeOptionalFailureToOptionalError(this.#converter, failure));
  }
}
