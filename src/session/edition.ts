/**
 * Decisions that differ by the edition of the session's manifest. A history on record has the edition with which it was
 * written, so it replays: see "Changing workflow code" in CONTRIBUTING.md.
 */
import type { SessionState } from '../contract/state.ts';

/** What sessions do otherwise since an edition. */
type Decision =
  /** An approval with rules for its people never expires into a run, whatever a deploy has made of its tool. */
  | 'approversHold'
  /** The list of an undo has the global effects that a call stopped waiting for. */
  | 'undoListsGivenUp'
  /** People are told of the new arguments of a call that waits for more of them. */
  | 'tellsEdits'
  /** People are told of what still needs them while a session skips the rest of its calls. */
  | 'tellsWhileStopping'
  /** The caps of a sub-agent hold for its own sub-agents, too. */
  | 'capsBelow'
  /** A new run knows what the last messages said, and a message that is dropped for its id is noted. */
  | 'knowsLostMessages'
  /** A pause takes the place of a chat's stop, which the next message would end. */
  | 'pausesOverStop'
  /** The calls that wait for a global effect are told when a person has answered, and when it is lost again. */
  | 'tellsWhenAnswered'
  /** A session whose pool refused a model without a price looks for a newer definition before it asks again. */
  | 'looksForPrice';

const SINCE: Readonly<Record<Decision, number>> = {
  approversHold: 2,
  undoListsGivenUp: 2,
  tellsEdits: 2,
  tellsWhileStopping: 2,
  capsBelow: 2,
  knowsLostMessages: 2,
  pausesOverStop: 3,
  tellsWhenAnswered: 3,
  looksForPrice: 3,
};

/** Whether a session makes a decision of newer code. */
export function decides({ manifest }: SessionState, decision: Decision): boolean {
  return (manifest?.edition ?? 1) >= SINCE[decision];
}
