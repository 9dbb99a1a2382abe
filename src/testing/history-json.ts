/** Reads histories that Temporal's command line or UI wrote. */
import proto from '@temporalio/proto';
import { invalid } from '../contract/errors.ts';

const { History } = proto.temporal.api.history.v1;

/** Names of the fields that hold a length of time. */
const DURATION = /(Timeout|Interval|Backoff|Delay|ExpirationTime)$/;

/**
 * Reads a history from JSON, for `Worker.runReplayHistory`. It takes what `temporal workflow show --output json`, the
 * download of Temporal's UI and {@link historyToJSON} write.
 *
 * `historyFromJSON` of `@temporalio/common` fails with `type must be a Type` where npm has installed two versions of
 * protobufjs. This function needs `@temporalio/proto` only.
 *
 * @param json - the text, or what `JSON.parse` made of it
 * @throws PerdureError `INVALID_ARGUMENT` when it holds no history
 */
export function historyFromJSON(json: unknown): proto.temporal.api.history.v1.History {
  try {
    const value: unknown = typeof json === 'string' ? JSON.parse(json) : json;
    const { events } = value as { events?: unknown };
    if (!Array.isArray(events)) throw new Error('it has no list of events');
    return History.fromObject({ events: events.map((event) => readTimes(event, '')) });
  } catch (cause) {
    throw invalid('json', `this is not a history: ${(cause as Error).message}`, cause);
  }
}

/** Writes a history, such as `handle.fetchHistory()` returns it, as JSON. */
export function historyToJSON(history: proto.temporal.api.history.v1.IHistory): string {
  const options = { longs: String, enums: String, bytes: String };
  return JSON.stringify(History.toObject(History.fromObject(history), options), null, 2);
}

/** Times and lengths of time are text in JSON, and seconds with nanoseconds in a message. */
function readTimes(value: unknown, field: string): unknown {
  if (Array.isArray(value)) return value.map((item) => readTimes(item, field));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, readTimes(inner, name)]));
  }
  if (typeof value !== 'string') return value;
  const length = DURATION.test(field) ? /^(-?\d+)(?:\.(\d{1,9}))?s$/.exec(value) : null;
  if (length) return { seconds: length[1], nanos: nanos(length[2]) };
  const time = field.endsWith('Time') ? /^(\d{4}-\d\d-\d\dT[\d:]{8})(?:\.(\d{1,9}))?Z$/.exec(value) : null;
  if (time) return { seconds: String(Date.parse(`${time[1]}Z`) / 1_000), nanos: nanos(time[2]) };
  return value;
}

function nanos(digits: string | undefined): number {
  return Number((digits ?? '').padEnd(9, '0'));
}
