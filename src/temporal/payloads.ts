/** Decodes a history's payloads with the client's own converter and codecs. */
import {
  defaultPayloadConverter,
  fromPayloadsAtIndex,
  type LoadedDataConverter,
  type Payload,
  type PayloadCodec,
  type SerializationContext,
  ValueError,
} from '@temporalio/common';
import proto, { type temporal } from '@temporalio/proto';
import { type ActivityFailureInfo, activityFailureInfo } from '../contract/failure.ts';
import { UNREADABLE } from '../contract/inputs.ts';
import type { LiveCoding, LiveKey } from '../contract/live-text.ts';
import type { HistoryEvent } from './read-events.ts';
import {
  decode,
  decodeFailure,
  decodeFromPayloadsAtIndex,
  decodeOptionalSinglePayload,
  encode,
  encodeToPayloadsWithContext,
  saysUnknownEncoding,
} from './sdk-internals.ts';

const { Payload: PayloadMessage } = proto.temporal.api.common.v1;

type Payloads = temporal.api.common.v1.IPayloads | null | undefined;
type Failure = temporal.api.failure.v1.IFailure | null | undefined;

/** How the payloads of a namespace are decoded. A client's options hold both. */
export interface Decoding {
  readonly loadedDataConverter: LoadedDataConverter;
  readonly namespace: string;
}

/** The first value of some payloads of a workflow, or `undefined`. @throws what codecs and converter throw */
export async function firstValue(
  { loadedDataConverter, namespace }: Decoding,
  workflowId: string,
  payloads: Payloads,
): Promise<unknown> {
  const list = payloads?.payloads;
  if (list === null || list === undefined || list.length === 0) return undefined;
  const context = { type: 'workflow', namespace, workflowId } as const;
  return decodeFromPayloadsAtIndex<unknown>(loadedDataConverter, 0, list, context);
}

/** Encodes a payload with codecs, and serializes it. */
export async function encodeBytes(
  codecs: PayloadCodec[],
  payload: Payload,
  context: SerializationContext,
): Promise<Uint8Array> {
  const [encoded = payload] = await encode(codecs, [payload], context);
  return PayloadMessage.encode(encoded).finish();
}

/** Reverses {@link encodeBytes}. @throws what a codec throws */
export async function decodeBytes(
  codecs: PayloadCodec[],
  bytes: Uint8Array,
  context: SerializationContext,
): Promise<Payload> {
  const payload = PayloadMessage.decode(bytes);
  const [decoded = payload] = await decode(codecs, [payload], context);
  return decoded;
}

/** Whether a client without codecs can read a payload. */
export function isReadablePlain({ loadedDataConverter }: Decoding, payload: Payload): boolean {
  try {
    loadedDataConverter.payloadConverter.fromPayload(payload);
    return true;
  } catch (error) {
    return !isUnknownEncoding(error);
  }
}

/** Whether the error says that the client does not know a payload's encoding: it lacks the codec that made it. */
export function isUnknownEncoding(error: unknown): boolean {
  return error instanceof ValueError && saysUnknownEncoding(error.message);
}

/** The message of a failure. An encoded message is decoded if this client can do that. */
export async function failureMessage(
  { loadedDataConverter }: Decoding,
  failure: Failure,
  context?: SerializationContext,
): Promise<string> {
  if (!failure?.encodedAttributes) return failure?.message ?? '';
  try {
    const decoded = await decodeFailure(loadedDataConverter.payloadCodecs, failure, context);
    const { failureConverter, payloadConverter } = loadedDataConverter;
    return failureConverter.failureToError(decoded, payloadConverter, context).message;
  } catch {
    return failure.message ?? '';
  }
}

/** The context with which the SDK converts the payloads of an activity. */
export function activityContext(
  namespace: string,
  workflowId: string,
  activityId: string,
): SerializationContext {
  return { type: 'activity', namespace, workflowId, activityId, isLocal: false };
}

/** Converts and encodes the live text of a model call as the SDK does with the activity's payloads. */
export function liveCoding(
  { loadedDataConverter, namespace }: Decoding,
  sessionId: string,
  { activityId }: LiveKey,
): LiveCoding {
  const context = activityContext(namespace, sessionId, activityId);
  return {
    encode: async (value) => {
      const [payload = {}] = (await encodeToPayloadsWithContext(loadedDataConverter, context, [value])) ?? [];
      return PayloadMessage.encode(payload).finish();
    },
    decode: (bytes) =>
      decodeOptionalSinglePayload<unknown>(loadedDataConverter, PayloadMessage.decode(bytes), context),
  };
}

type Decoded = ({ value: unknown } | { error: unknown }) & { context: SerializationContext };

/**
 * Reads values from the events of a run, from its first event on. Codecs are asynchronous, so a page is decoded before
 * its values are read.
 */
export class PayloadReader {
  readonly #converter: LoadedDataConverter;
  readonly #namespace: string;
  #workflowId = '';
  /** The ids of open activities, by the event that scheduled each. */
  readonly #activities = new Map<number, string>();
  /** What the codecs returned for payloads and failures, or threw. */
  readonly #decoded = new Map<object, Decoded>();

  constructor({ loadedDataConverter, namespace }: Decoding) {
    this.#converter = loadedDataConverter;
    this.#namespace = namespace;
  }

  /** Decodes a page of events. Errors are thrown when the value is read. */
  async load(events: readonly HistoryEvent[]): Promise<void> {
    const { payloadCodecs, payloadConverter } = this.#converter;
    if (payloadCodecs.length === 0 && payloadConverter === defaultPayloadConverter) return;
    this.#decoded.clear();
    for (const event of events) {
      const context = this.#contextOf(event);
      for (const payloads of payloadsOf(event)) {
        await this.#keep(payloads, context, async () => ({
          payloads: await decode(payloadCodecs, payloads?.payloads ?? [], context),
        }));
      }
      const failure = failureOf(event);
      await this.#keep(failure, context, async () => decodeFailure(payloadCodecs, failure ?? {}, context));
    }
  }

  /** The context with which the SDK encoded the payloads of an event. */
  #contextOf(event: HistoryEvent): SerializationContext {
    this.#workflowId = event.workflowExecutionStartedEventAttributes?.workflowId ?? this.#workflowId;
    const activityId = event.activityTaskScheduledEventAttributes?.activityId;
    if (activityId) this.#activities.set(Number(event.eventId), activityId);
    const scheduled = Number(activityEndOf(event)?.scheduledEventId ?? 0);
    const ended = this.#activities.get(scheduled);
    this.#activities.delete(scheduled);
    return ended === undefined
      ? { type: 'workflow', namespace: this.#namespace, workflowId: this.#workflowId }
      : activityContext(this.#namespace, this.#workflowId, ended);
  }

  async #keep(
    source: object | null | undefined,
    context: SerializationContext,
    decoded: () => Promise<unknown>,
  ): Promise<void> {
    if (!source) return;
    try {
      this.#decoded.set(source, { value: await decoded(), context });
    } catch (error) {
      this.#decoded.set(source, { error, context });
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
      this.#decoded.get(payloads)?.context,
    );
  }

  /**
   * The first value, or `UNREADABLE`, which the workflow uses, too, when the converter cannot read the value.
   *
   * @throws what codecs throw
   */
  firstOrUnreadable(payloads: Payloads): unknown {
    // Codecs run before the workflow: while one fails, no workflow task completes.
    if (payloads) this.#plain(payloads);
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
      failure
        ? failureConverter.failureToError(
            this.#plain(failure),
            payloadConverter,
            this.#decoded.get(failure)?.context,
          )
        : undefined,
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

function activityEndOf(event: HistoryEvent): { scheduledEventId?: unknown } | null | undefined {
  return (
    event.activityTaskCompletedEventAttributes ??
    event.activityTaskFailedEventAttributes ??
    event.activityTaskTimedOutEventAttributes ??
    event.activityTaskCanceledEventAttributes
  );
}

function failureOf(event: HistoryEvent): Failure {
  return (
    event.activityTaskFailedEventAttributes?.failure ??
    event.activityTaskTimedOutEventAttributes?.failure ??
    event.markerRecordedEventAttributes?.failure
  );
}
