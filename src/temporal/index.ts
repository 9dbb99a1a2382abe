export { isNotFound, loadParts, orNull, readStartInput } from './content.ts';
export { firstValue } from './payloads.ts';
export {
  endReason,
  type HistoryEvent,
  previousRun,
  readEvents,
  readPages,
  readStart,
  resetOf,
} from './read-events.ts';
