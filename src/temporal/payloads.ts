/** Decodes a history's payloads with the client's own converter and codecs. */
import { fromPayloadsAtIndex, type LoadedDataConverter } from '@temporalio/common';
import type { temporal } from '@temporalio/proto';
import { type ActivityFailureInfo, activityFailureInfo } from '../contract/failure.ts';
import { UNREADABLE } from '../contract/inputs.ts';
import type { HistoryEvent } from './read-events.ts';
import { decode, decodeFailure, decodeFromPayloadsAtIndex } from './sdk-internals.ts';

type Payloads = temporal.api.common.v1.IPayloads | null | undefined;
type Failure = temporal.api.failure.v1.IFailure | null | undefined;

/** The first value of some payloads, or `undefined`. @throws what codecs and converter throw */
export async function firstValue(converter: LoadedDataConverter, payloads: Payloads): Promise<unknown> {
  const list = payloads?.payloads;
  if (list === null || list === undefined || list.length === 0) return undefined;
  return decodeFromPayloadsAtIndex<unknown>(converter, 0, list);
}

/** Reads values from a page of events. Codecs are asynchronous, so a page is decoded before its values are read. */
export class PayloadReader {
  readonly #converter: LoadedDataConverter;
  /** What the codecs returned for payloads and failures, or threw. */
  readonly #decoded = new Map<object, { value: unknown } | { error: unknown }>();

  constructor(converter: LoadedDataConverter) {
    this.#converter = converter;
  }

  /** Decodes a page of events. Errors are thrown when the value is read. */
  async load(events: readonly HistoryEvent[]): Promise<void> {
    const { payloadCodecs } = this.#converter;
    if (payloadCodecs.length === 0) return;
    this.#decoded.clear();
    for (const event of events) {
      for (const payloads of payloadsOf(event)) {
        await this.#keep(payloads, async () => ({
          payloads: await decode(payloadCodecs, payloads?.payloads ?? []),
        }));
      }
      const failure = failureOf(event);
      await this.#keep(failure, async () => decodeFailure(payloadCodecs, failure ?? {}));
    }
  }

  async #keep(source: object | null | undefined, decoded: () => Promise<unknown>): Promise<void> {
    if (!source) return;
    try {
      this.#decoded.set(source, { value: await decoded() });
    } catch (error) {
      this.#decoded.set(source, { error });
    }
  }

  #plain<T extends object>(source: T): T {
    const found = this.#decoded.get(source);
    if (found === undefined) return source;
    if ('error' in found) throw found.error;
    return found.value as T;
  }

  /** The first value, or `undefined`. @throws what codecs and converter throw */
  first(payloads: Payloads): unknown {
    if (!payloads?.payloads?.length) return undefined;
    return fromPayloadsAtIndex<unknown>(
      this.#converter.payloadConverter,
      0,
      this.#plain(payloads).payloads ?? [],
    );
  }

  /** The first value, or what the workflow uses when it cannot be decoded. */
  firstOrUnreadable(payloads: Payloads): unknown {
    try {
      return this.first(payloads);
    } catch {
      return UNREADABLE;
    }
  }

  /** A failure as the live session describes it. */
  failure(failure: Failure): ActivityFailureInfo {
    const { failureConverter, payloadConverter } = this.#converter;
    return activityFailureInfo(
      failure ? failureConverter.failureToError(this.#plain(failure), payloadConverter) : undefined,
    );
  }
}

/** Every payload of an event that the fold reads. */
function payloadsOf(event: HistoryEvent): Payloads[] {
  const details = event.markerRecordedEventAttributes?.details;
  return [
    event.workflowExecutionStartedEventAttributes?.input,
    event.workflowExecutionSignaledEventAttributes?.input,
    event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest?.input?.args,
    event.workflowExecutionUpdateAdmittedEventAttributes?.request?.input?.args,
    event.activityTaskCompletedEventAttributes?.result,
    details?.['data'],
    details?.['result'],
  ];
}

function failureOf(event: HistoryEvent): Failure {
  return (
    event.activityTaskFailedEventAttributes?.failure ??
    event.activityTaskTimedOutEventAttributes?.failure ??
    event.markerRecordedEventAttributes?.failure
  );
}
