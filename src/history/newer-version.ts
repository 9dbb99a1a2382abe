/** Finds what only a newer version writes, so that its sessions are not folded to a state that they never had. */
import proto from '@temporalio/proto';
import { PATCH } from '../contract/names.ts';
import type { PayloadReader } from '../temporal/payloads.ts';
import type { HistoryEvent } from '../temporal/read-events.ts';
import { PATCH_MARKER } from '../temporal/sdk-internals.ts';
import { corrupt, toNumber } from './event-inputs.ts';

const { EventType } = proto.temporal.api.enums.v1;

const PATCHES: readonly string[] = Object.values(PATCH);

/** Events of commands that no session of this version issues. */
const FOREIGN: ReadonlyMap<number, string> = new Map([
  [EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED, 'starts a child workflow'],
  [EventType.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED, 'signals a workflow'],
  [EventType.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED, 'cancels a workflow'],
  [EventType.EVENT_TYPE_NEXUS_OPERATION_SCHEDULED, 'schedules a Nexus operation'],
]);

/**
 * Refuses an event that this version does not write.
 *
 * @throws PerdureError `CHECKPOINT_CORRUPTION` for a marker or a command that this version does not know
 */
export function refuseNewer(event: HistoryEvent, payloads: PayloadReader): void {
  const foreign = FOREIGN.get(event.eventType ?? 0);
  if (foreign !== undefined) throw newer(event, foreign);
  const marker = event.markerRecordedEventAttributes;
  if (!marker) return;
  if (marker.markerName !== PATCH_MARKER) throw newer(event, `records a marker ${marker.markerName}`);
  const data = payloads.first(marker.details?.['patch-data']) as { id?: string } | undefined;
  const name = data?.id ?? '';
  if (!PATCHES.includes(name)) throw newer(event, `records the patch '${name}'`);
}

function newer({ eventId }: HistoryEvent, what: string): Error {
  return corrupt(
    `event ${toNumber(eventId)} ${what}, which this version of perdure does not know. A newer version wrote it: update perdure`,
  );
}
